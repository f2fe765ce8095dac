/// Definitions of partials.
#include "samesum/catalogue/partial.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "samesum/base/environment.hpp"
#include "samesum/catalogue/catalogue.hpp"
#include "samesum/catalogue/partial_range.hpp"
#include "samesum/catalogue/selection.hpp"
#include "samesum/catalogue/state_call.hpp"

namespace samesum {
namespace {

[[noreturn]] void refuse_partial(const Method& m, const std::string& why) {
  throw std::invalid_argument("samesum: Partial of " + m.name + ": " + why);
}

/// Rounds n elements from one format to another.
void round_elements(const FormatInfo& from, const void* x, std::size_t n, const FormatInfo& to, void* out) {
  with_format(from, [&]<class T>() {
    with_format(to, [&]<class F>() {
      std::transform(static_cast<const T*>(x), static_cast<const T*>(x) + n, static_cast<F*>(out),
                     [](T element) { return convert<F>(element); });
    });
  });
}

/// Elements in host memory.
class HostInput : public PartialInput {
 public:
  explicit HostInput(const Call& call) : call_{call} {}
  const FormatInfo& format() const override { return *call_.x.format; }
  void copy(std::size_t first, std::size_t n, std::byte* x, std::byte* y) override {
    const Call part = part_of(call_, {first, n}, nullptr);
    std::memcpy(x, part.x.data, n * format().bytes);
    if (y) std::memcpy(y, part.y.data, n * format().bytes);
  }
  void reduce(std::span<const Subtree> subtrees, std::size_t state_bytes, std::byte* states) override {
    for (const Subtree& subtree : subtrees) {
      HostRun run{part_of(call_, subtree, std::exchange(states, states + state_bytes)), true};
      Code::of(*call_.method).host.run(run.call, run);
    }
  }

 private:
  Call call_;
};

const PartialForm& form_of(const Method& m) {
  if (m.takes_keys) refuse_partial(m, "its method takes keys; a partial gives one result");
  if (m.has_result_per_element)
    refuse_partial(m, "the method returns a number per element; a partial gives one result");
  if (m.promise < Promise::everywhere)
    refuse_partial(m, "its bits differ from run to run; use a method that promises everywhere");
  const PartialForm* const form = Code::of(m).partial_form;
  if (!form) refuse_partial(m, "its accumulator has no partials; reduce the whole vector in one call");
  return *form;
}

/// Merges the first `lanes` states of one subtree with those of the next.
void merge_lanes(const PartialForm& form, std::byte* left, const std::byte* right, std::uint64_t lanes) {
  for (std::size_t at = 0; at < lanes * form.state_bytes; at += form.state_bytes)
    form.merge(left + at, right + at);
}

}  // namespace

std::unique_ptr<PartialInput> Backend::partial_input(const Call& call) const {
  return std::make_unique<HostInput>(call);
}

Call call_for_state(const Method& method, const Values& x, const Values& y, const Options& options) {
  return {.method = &method,
          .x = x,
          .y = y,
          .layout = Layout::vector(x.size),
          .out = {nullptr, nullptr, 0},
          .options = options};
}

Partial::Partial(const Method& method, std::uint64_t begin, std::optional<int> grid)
    : method_{&find(method.name)},
      on_host_{method.backend == "cuda" ? &find_on("cpu", method) : method_},
      form_{&form_of(method)},
      begin_{begin},
      end_{begin},
      grid_{grid} {
  std::string wrong = validation_error(method, {.grid = grid});
  if (wrong.empty() && method.takes_grid && !grid)
    wrong = "a partial needs a grid, which its neighbours share; pass one";
  if (!wrong.empty()) refuse_partial(method, wrong);
  if (begin >= most_elements) throw std::length_error("samesum: Partial: begin is 2^63 or more");
}

Partial::Partial(std::string_view name, std::uint64_t begin, std::optional<int> grid)
    : Partial{find(name), begin, grid} {}

Partial::Partial(Partial&& other) noexcept
    : method_{other.method_},
      on_host_{other.on_host_},
      form_{other.form_},
      begin_{other.begin_},
      end_{std::exchange(other.end_, other.begin_)},
      grid_{other.grid_},
      head_{std::exchange(other.head_, {})},
      tail_{std::exchange(other.tail_, {})},
      subtrees_{std::exchange(other.subtrees_, {})},
      states_{std::exchange(other.states_, {})} {}

Partial& Partial::operator=(Partial&& other) noexcept {
  if (this == &other) return *this;
  std::destroy_at(this);
  return *std::construct_at(this, std::move(other));
}

std::string Partial::name() const { return method_->name.substr(0, method_->name.find('@')); }

std::size_t Partial::subtree_bytes() const { return form_->lanes * form_->state_bytes; }

// --- taking in elements ------------------------------------------------------------------------------------

/// The leaf that takes in the next element, of which the range holds only a part.
Partial::Elements& Partial::open_leaf() { return end_ - end_ % form_->leaf < begin_ ? head_ : tail_; }

void Partial::add(Values x, Values y, Options options) {
  if (selects(options)) return add_selected(*this, x, y, options);
  const FloatingPointEnvironment environment;
  check(options);
  check_same_grid(options);
  check_portion(*this, x, y);
  options.grid = grid_;
  add(*Code::of(*method_).backend->partial_input(call_for_state(*method_, x, y, options)), x.size);
}

/// The grid of a call is that of the partial, if it is given at all.
void Partial::check_same_grid(const Options& options) const {
  if (options.grid && options.grid != grid_)
    refuse_partial(*method_, "its grid is set when it is created; leave the option out");
}

void check_portion(const Partial& partial, const Values& x, const Values& y) {
  const Method& m = partial.method();
  std::uint64_t results[2] = {};
  Call call = call_for_state(m, x, y, {});
  call.out = {m.result_format(*m.format), results, static_cast<std::size_t>(m.results)};
  if (const std::string wrong = validation_error(call, true); !wrong.empty()) refuse_partial(m, wrong);
}

void add_to(Partial& partial, PartialInput& input, std::size_t n) { partial.add(input, n); }

/// Copies elements to host memory, rounded to the format of the method.
Partial::Elements Partial::rounded_copy(PartialInput& input, std::size_t first, std::size_t count) const {
  const FormatInfo &from = input.format(), &to = *method_->format;
  const bool two = method_->inputs == 2;
  const auto room = [&](const FormatInfo& format) {
    return Elements{std::vector<std::byte>(count * format.bytes),
                    std::vector<std::byte>(two ? count * format.bytes : 0), count};
  };
  Elements given = room(from);
  input.copy(first, count, given.x.data(), two ? given.y.data() : nullptr);
  if (from.index == to.index) return given;
  Elements rounded = room(to);
  round_elements(from, given.x.data(), count, to, rounded.x.data());
  if (two) round_elements(from, given.y.data(), count, to, rounded.y.data());
  return rounded;
}

void Partial::add(PartialInput& input, std::size_t n) {
  if (n == 0) return;
  if (n >= most_elements - end_)
    throw std::length_error("samesum: Partial: it would end beyond element 2^63 - 2");
  const PartialForm& form = *form_;
  if (form.extend && begin_ == 0) {
    constexpr std::size_t portion = 8192;  // for the first-level caches
    Partial after = *this;
    for (std::size_t first = 0; first < n; first += portion)
      after.continue_loop(rounded_copy(input, first, std::min(portion, n - first)));
    *this = std::move(after);
    return;
  }
  std::vector<PartialInput::Subtree> subtrees;
  std::size_t first = 0, last = n;
  if (form.leaf == 0) {
    subtrees.push_back({0, n});
  } else {
    const std::uint64_t left = distance_to_leaf(end_, form.leaf);
    if (n < left) return append_to_leaf(rounded_copy(input, 0, n));
    for (first = last = static_cast<std::size_t>(left); n - last >= form.leaf; last += subtrees.back().count)
      subtrees.push_back({last, static_cast<std::size_t>(subtree_size(end_ + last, end_ + n, form.leaf))});
  }
  std::vector<std::byte> states(subtrees.size() * subtree_bytes());
  if (!subtrees.empty()) input.reduce(subtrees, subtree_bytes(), states.data());
  Partial after = *this;
  if (first > 0) after.append_to_leaf(rounded_copy(input, 0, first));
  for (std::size_t i = 0; i < subtrees.size(); ++i) {
    std::byte* const state = states.data() + i * subtree_bytes();
    if (form.move_index) form.move_index(state, end_);
    after.append_subtree({end_ + subtrees[i].first, subtrees[i].count}, state);
  }
  if (last < n) after.append_to_leaf(rounded_copy(input, last, n - last));
  *this = std::move(after);
}

/// Adds elements to the leaf in which the range ends, at most as many as the leaf lacks. A whole leaf becomes
/// a state. If it throws without completing a leaf, nothing has changed.
void Partial::append_to_leaf(const Elements& elements) {
  Elements& leaf = open_leaf();
  const auto make_room = [](std::vector<std::byte>& to, const std::vector<std::byte>& from) {
    if (to.capacity() < to.size() + from.size())
      to.reserve(std::max(to.size() + from.size(), 2 * to.capacity()));
  };
  make_room(leaf.x, elements.x);
  make_room(leaf.y, elements.y);
  leaf.x.insert(leaf.x.end(), elements.x.begin(), elements.x.end());
  leaf.y.insert(leaf.y.end(), elements.y.begin(), elements.y.end());
  leaf.count += elements.count;
  end_ += elements.count;
  if (&leaf == &head_ || leaf.count < form_->leaf) return;
  const Elements whole = std::exchange(tail_, {});
  std::vector<std::byte> state(subtree_bytes());
  reduce_leaf(whole, state.data());
  append_subtree({end_ - whole.count, whole.count}, state.data());
}

/// Appends a subtree, and merges subtrees that are the two halves of a larger one.
void Partial::append_subtree(Subtree subtree, const std::byte* state) {
  states_.insert(states_.end(), state, state + subtree_bytes());
  subtrees_.push_back(subtree);
  end_ = subtree.first + subtree.count;
  while (subtrees_.size() > 1) {
    Subtree &left = subtrees_[subtrees_.size() - 2], &right = subtrees_.back();
    if (form_->leaf != 0 && (left.count != right.count || left.first % (2 * left.count) != 0)) return;
    std::byte* const right_state = states_.data() + states_.size() - subtree_bytes();
    merge_lanes(*form_, right_state - subtree_bytes(), right_state, form_->lanes);
    left.count += right.count;
    subtrees_.pop_back();
    states_.resize(states_.size() - subtree_bytes());
  }
}

/// Continues the textbook loop, whose state begins at element 0.
void Partial::continue_loop(const Elements& elements) {
  states_.resize(subtree_bytes());
  form_->extend(states_.data(), end_, elements.x.data(), elements.y.empty() ? nullptr : elements.y.data(),
                static_cast<std::size_t>(elements.count));
  end_ += elements.count;
  subtrees_ = {{0, end_}};
}

void Partial::merge(const Partial& next) {
  const FloatingPointEnvironment environment;
  if (name() != next.name()) refuse_partial(*method_, "it cannot merge with a partial of " + next.name());
  if (next.grid_ != grid_)
    refuse_partial(*method_, "its grid is " + std::to_string(*grid_) + ", but that of the other is " +
                                 std::to_string(*next.grid_) + "; give all partials of a vector one grid");
  if (next.begin_ != end_)
    refuse_partial(*method_, "it ends before element " + std::to_string(end_) +
                                 ", but the other begins at element " + std::to_string(next.begin_) +
                                 "; merge neighbours, the left one first");
  Partial both = *this;
  const bool is_loop = form_->extend != nullptr && begin_ == 0;
  const auto part = [&](const Elements& elements) {
    is_loop ? both.continue_loop(elements) : both.append_to_leaf(elements);
  };
  if (next.head_.count > 0) part(next.head_);
  for (std::size_t i = 0; i < next.subtrees_.size(); ++i)
    both.append_subtree(next.subtrees_[i], next.states_.data() + i * subtree_bytes());
  if (next.tail_.count > 0) part(next.tail_);
  *this = std::move(both);
}

// --- results -----------------------------------------------------------------------------------------------

/// Writes the state of a leaf from its elements.
void Partial::reduce_leaf(const Elements& leaf, std::byte* state) const {
  const std::size_t n = static_cast<std::size_t>(leaf.count);
  const FormatInfo& format = *method_->format;
  const Values x{format, leaf.x.data(), n}, y{format, leaf.y.data(), n};
  HostInput elements{call_for_state(*on_host_, x, method_->inputs == 2 ? y : Values{}, {.threads = 1})};
  const PartialInput::Subtree whole{0, n};
  elements.reduce({&whole, 1}, subtree_bytes(), state);
}

/// The state of the whole tree. Stride doubling merges the subtrees from the last, smallest one on.
std::vector<std::byte> Partial::root() const {
  const std::size_t bytes = form_->state_bytes;
  std::vector<std::byte> right;
  std::uint64_t lanes = size() == 0 ? 0 : form_->lanes;  // in the last row of a canonical order maybe fewer
  if (tail_.count > 0) {
    right.resize(subtree_bytes());
    reduce_leaf(tail_, right.data());
    lanes = std::min(lanes, tail_.count);
  }
  if (form_->from_left) return root_from_left(std::move(right));
  for (std::size_t i = subtrees_.size(); i-- > 0;) {
    const std::byte* const state = states_.data() + i * subtree_bytes();
    std::vector<std::byte> left{state, state + subtree_bytes()};
    if (!right.empty()) merge_lanes(*form_, left.data(), right.data(), lanes);
    lanes = form_->lanes;
    right = std::move(left);
  }
  for (std::size_t stride = 1; stride < lanes; stride *= 2)
    for (std::size_t lane = 0; lane + stride < lanes; lane += 2 * stride)
      form_->merge(right.data() + lane * bytes, right.data() + (lane + stride) * bytes);
  return right;
}

/// The state of the whole tree in the order prefix, whose groups are merged from the first, largest one on,
/// and then with the tail; empty if there is none.
std::vector<std::byte> Partial::root_from_left(std::vector<std::byte> tail) const {
  const std::size_t bytes = form_->state_bytes;
  std::vector<std::byte> all;
  const auto append = [&](const std::byte* state) {
    if (all.empty())
      all.assign(state, state + bytes);
    else
      form_->merge(all.data(), state);
  };
  for (std::size_t i = 0; i < subtrees_.size(); ++i) append(states_.data() + i * bytes);
  if (!tail.empty()) append(tail.data());
  return all;
}

void Partial::finish(Results out, Options options) const {
  const FloatingPointEnvironment environment;
  const Method& m = *method_;
  if (begin_ != 0)
    refuse_partial(m, "it begins at element " + std::to_string(begin_) +
                          "; merge it into the partial that begins at element 0");
  check_same_grid(options);
  const Values none{*m.format, nullptr, 0};
  Call call = call_for_state(m, none, m.inputs == 2 ? none : Values{}, options);
  call.out = out;
  if (const std::string wrong = validation_error(call, true); !wrong.empty()) refuse_partial(m, wrong);
  const std::vector<std::byte> state = root();
  if (form_->overflows && !state.empty() && form_->overflows(state.data(), end_)) refuse_grid(m, *grid_);
  form_->finish({options.ddof, grid_.value_or(0)}, state.empty() ? nullptr : state.data(), end_, out.data);
}

Number Partial::finish(Options options) const {
  const Method& m = *method_;
  if (m.returns_index || m.results != 1)
    refuse_partial(m, m.returns_index ? "the method returns an index; call finish with a std::int64_t for it"
                                      : "the method returns two numbers; call finish with an array for them");
  std::uint64_t bits = 0;
  finish({m.format, &bits, 1}, options);
  return {m.format, bits};
}

}  // namespace samesum
