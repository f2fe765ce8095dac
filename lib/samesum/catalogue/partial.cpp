/// Definitions of partials.
#include "samesum/catalogue/partial.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "samesum/base/environment.hpp"
#include "samesum/catalogue/backend.hpp"
#include "samesum/catalogue/catalogue.hpp"

namespace samesum {
namespace {

constexpr std::uint64_t most_elements = std::uint64_t{1} << 63;

[[noreturn]] void refuse(const Method& m, const std::string& why) {
  throw std::invalid_argument("samesum: Partial of " + m.name + ": " + why);
}

/// The method on a backend that reads host memory.
const Method& on_host(const Method& m) { return m.backend == "cuda" ? find_on("cpu", m) : m; }

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
  HostInput(const Backend& backend, const Method& method, const Call& call)
      : backend_{backend}, method_{method}, call_{call} {}
  const FormatInfo& format() const override { return *call_.input; }
  void copy(std::size_t first, std::size_t n, std::byte* x, std::byte* y) override {
    std::memcpy(x, at(call_.x, first), n * format().bytes);
    if (y) std::memcpy(y, at(call_.y, first), n * format().bytes);
  }
  void reduce(std::span<const Block> blocks, std::size_t bytes, std::byte* states) override {
    for (const Block& block : blocks) {
      Call call = call_;
      call.x = at(call_.x, block.first);
      call.y = call_.y ? at(call_.y, block.first) : nullptr;
      call.size = block.n;
      call.layout = Layout::vector(block.n);
      call.out = std::exchange(states, states + bytes);
      call.as_state = true;
      backend_.enqueue(method_, call);
    }
  }

 private:
  const std::byte* at(const void* x, std::size_t first) const {
    return static_cast<const std::byte*>(x) + first * format().bytes;
  }
  const Backend& backend_;
  const Method& method_;
  Call call_;
};

Call call_on_host(const FormatInfo& format, const void* x, const void* y, std::size_t n,
                  const Options& options) {
  return {&format, x, y, n, Layout::vector(n), nullptr, 0, options};
}

const PartialForm& form_of(const Method& m) {
  if (m.has_result_per_element)
    refuse(m, "the method returns a number per element; a partial gives one result");
  if (m.promise < Promise::everywhere)
    refuse(m, "its bits differ from run to run; use a method that promises everywhere");
  return *Code::of(find_on("reference", m)).partial_form;
}

/// The largest subtree that begins at element `first`, a multiple of `leaf`, and ends at `end` or before.
std::uint64_t subtree_size(std::uint64_t first, std::uint64_t end, std::uint64_t leaf) {
  const std::uint64_t k = first / leaf, fits = std::bit_floor((end - first) / leaf);
  return leaf * (k == 0 ? fits : std::min(fits, k & (~k + 1)));
}

}  // namespace

std::unique_ptr<PartialInput> Backend::partial_input(const Method& method, const Call& call) const {
  return std::make_unique<HostInput>(*this, method, call);
}

Partial::Partial(const Method& method, std::uint64_t begin)
    : method_{&method}, form_{&form_of(method)}, begin_{begin}, end_{begin} {
  if (begin >= most_elements) throw std::length_error("samesum: Partial: begin is 2^63 or more");
}

Partial::Partial(std::string_view name, std::uint64_t begin) : Partial{find(name), begin} {}

std::string Partial::name() const { return method_->name.substr(0, method_->name.find('@')); }

std::size_t Partial::node_bytes() const { return form_->lanes * form_->state_bytes; }

// --- taking in elements ------------------------------------------------------------------------------------

/// Index of the first element of the leaf in which the range ends.
std::uint64_t Partial::leaf_begin() const { return end_ - end_ % form_->leaf; }

/// The leaf that takes in the next element, of which the range holds only a part.
Partial::Elements& Partial::open_leaf() { return leaf_begin() < begin_ ? head_ : tail_; }

void Partial::add(Values x, Options options) { add(x, nullptr, options); }
void Partial::add(Values x, Values y, Options options) { add(x, &y, options); }

void Partial::add(const Values& x, const Values* y, const Options& options) {
  const FloatingPointEnvironment environment;
  const Method& m = *method_;
  check(options);
  check_portion(*this, x, y);
  const Call call = call_on_host(*x.format, x.data, y ? y->data : nullptr, x.size, options);
  add(*Code::of(m).backend->partial_input(m, call), x.size);
}

void check_portion(const Partial& partial, const Values& x, const Values* y) {
  const Method& m = partial.method();
  std::uint64_t results[2] = {};
  const Results out{m.result_format(*m.format), results, static_cast<std::size_t>(m.results)};
  if (const std::string wrong = validation_error(m, x, y, Layout::vector(x.size), out, true); !wrong.empty())
    refuse(m, wrong);
}

void add_to(Partial& partial, PartialInput& input, std::size_t n) { partial.add(input, n); }

/// Copies elements to host memory, rounded to the format of the method.
Partial::Elements Partial::copied(PartialInput& input, std::size_t first, std::size_t count) const {
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
  if (n >= most_elements - end_) throw std::length_error("samesum: Partial: it would reach element 2^63");
  const PartialForm& form = *form_;
  if (form.extend && begin_ == 0) {
    constexpr std::size_t portion = 8192;  // for the first-level caches
    const Partial before = *this;
    try {
      for (std::size_t first = 0; first < n; first += portion)
        extend(copied(input, first, std::min(portion, n - first)));
    } catch (...) {
      *this = before;
      throw;
    }
    return;
  }
  // All that may fail comes before the first change.
  using Block = PartialInput::Block;
  std::vector<Block> blocks;
  std::size_t first = 0, last = n;
  if (form.leaf == 0) {
    blocks.push_back({0, n});
  } else {
    const std::uint64_t used = end_ % form.leaf, left = used == 0 ? 0 : form.leaf - used;
    first = static_cast<std::size_t>(std::min<std::uint64_t>(left, n));
    for (last = first; n - last >= form.leaf; last += blocks.back().n)
      blocks.push_back({last, static_cast<std::size_t>(subtree_size(end_ + last, end_ + n, form.leaf))});
  }
  const Elements to_head = copied(input, 0, first), to_tail = copied(input, last, n - last);
  std::vector<std::byte> states(blocks.size() * node_bytes());
  if (!blocks.empty()) input.reduce(blocks, node_bytes(), states.data());

  const std::uint64_t start = end_;
  keep(to_head);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    std::byte* const state = states.data() + b * node_bytes();
    if (form.move_index) form.move_index(state, start);
    push({start + blocks[b].first, blocks[b].n}, state);
  }
  keep(to_tail);
}

/// Adds elements, fewer than a leaf, to the leaf that the range ends in. A whole leaf becomes a state.
void Partial::keep(const Elements& elements) {
  if (elements.count == 0) return;
  Elements& leaf = open_leaf();
  leaf.x.insert(leaf.x.end(), elements.x.begin(), elements.x.end());
  leaf.y.insert(leaf.y.end(), elements.y.begin(), elements.y.end());
  leaf.count += elements.count;
  end_ += elements.count;
  if (&leaf == &head_ || tail_.count < form_->leaf) return;
  std::vector<std::byte> state(node_bytes());
  reduce_tail(state.data());
  end_ -= tail_.count;
  push({end_, tail_.count}, state.data());
  tail_ = {};
}

/// Continues the textbook loop, whose state begins at element 0.
void Partial::extend(const Elements& elements) {
  states_.resize(node_bytes());
  form_->extend(states_.data(), end_, elements.x.data(), elements.y.empty() ? nullptr : elements.y.data(),
                static_cast<std::size_t>(elements.count));
  end_ += elements.count;
  nodes_ = {{0, end_}};
}

/// Appends a subtree, and merges subtrees that are the two halves of a larger one.
void Partial::push(Node node, const std::byte* state) {
  states_.insert(states_.end(), state, state + node_bytes());
  nodes_.push_back(node);
  end_ = node.first + node.count;
  while (nodes_.size() > 1) {
    Node &left = nodes_[nodes_.size() - 2], &right = nodes_.back();
    if (form_->leaf != 0 && (left.count != right.count || left.first % (2 * left.count) != 0)) return;
    std::byte* const right_state = states_.data() + states_.size() - node_bytes();
    for (std::size_t lane = 0; lane < form_->lanes; ++lane)
      form_->merge(right_state - node_bytes() + lane * form_->state_bytes,
                   right_state + lane * form_->state_bytes);
    left.count += right.count;
    nodes_.pop_back();
    states_.resize(states_.size() - node_bytes());
  }
}

void Partial::merge(const Partial& next) {
  const FloatingPointEnvironment environment;
  if (name() != next.name()) refuse(*method_, "it cannot merge with a partial of " + next.name());
  if (next.begin_ != end_)
    refuse(*method_, "it ends before element " + std::to_string(end_) + ", but the other begins at element " +
                         std::to_string(next.begin_) + "; merge neighbours, the left one first");
  Partial both = *this;
  const auto part = [&](const Elements& elements) {
    form_->extend&& begin_ == 0 ? both.extend(elements) : both.keep(elements);
  };
  if (next.head_.count > 0) part(next.head_);
  for (std::size_t i = 0; i < next.nodes_.size(); ++i)
    both.push(next.nodes_[i], next.states_.data() + i * node_bytes());
  if (next.tail_.count > 0) part(next.tail_);
  *this = std::move(both);
}

// --- results -----------------------------------------------------------------------------------------------

/// Writes the state of the elements of the last leaf.
void Partial::reduce_tail(std::byte* state) const {
  const Method& m = on_host(*method_);
  const std::size_t n = static_cast<std::size_t>(tail_.count);
  HostInput elements{
      *Code::of(m).backend, m,
      call_on_host(*m.format, tail_.x.data(), tail_.y.empty() ? nullptr : tail_.y.data(), n, {1})};
  const PartialInput::Block block{0, n};
  elements.reduce({&block, 1}, node_bytes(), state);
}

/// The state of the whole tree: stride doubling merges the subtrees from the last, smallest one on.
std::vector<std::byte> Partial::root() const {
  const std::size_t bytes = form_->state_bytes;
  std::vector<std::byte> right;
  std::uint64_t lanes = size() == 0 ? 0 : form_->lanes;  // in the last row of a canonical order maybe fewer
  if (tail_.count > 0) {
    right.resize(node_bytes());
    reduce_tail(right.data());
    lanes = std::min(lanes, tail_.count);
  }
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const std::byte* const state = states_.data() + i * node_bytes();
    std::vector<std::byte> left{state, state + node_bytes()};
    if (!right.empty()) {
      for (std::size_t lane = 0; lane < lanes; ++lane)
        form_->merge(left.data() + lane * bytes, right.data() + lane * bytes);
    }
    lanes = form_->lanes;
    right = std::move(left);
  }
  for (std::size_t stride = 1; stride < lanes; stride *= 2)
    for (std::size_t lane = 0; lane + stride < lanes; lane += 2 * stride)
      form_->merge(right.data() + lane * bytes, right.data() + (lane + stride) * bytes);
  return right;
}

void Partial::finish(Results out, Options options) const {
  const FloatingPointEnvironment environment;
  const Method& m = *method_;
  if (begin_ != 0)
    refuse(m, "it begins at element " + std::to_string(begin_) +
                  "; merge it into the partial that begins at element 0");
  std::string wrong = validation_error(m, options);
  const Values none{*m.format, nullptr, 0};
  if (wrong.empty())
    wrong = validation_error(m, none, m.inputs == 2 ? &none : nullptr, Layout::vector(0), out, true);
  if (!wrong.empty()) refuse(m, wrong);
  const std::vector<std::byte> state = root();
  form_->finish({options.ddof}, state.empty() ? nullptr : state.data(), end_, out.data);
}

Number Partial::finish(Options options) const {
  const Method& m = *method_;
  if (m.returns_index || m.results != 1)
    refuse(m, m.returns_index ? "the method returns an index; call finish with a std::int64_t for it"
                              : "the method returns two numbers; call finish with an array for them");
  std::uint64_t bits = 0;
  finish({m.format, &bits, 1}, options);
  return {m.format, bits};
}

// --- bytes -------------------------------------------------------------------------------------------------

namespace {

/// Puts elements; any NaN as the canonical one.
void put_elements(SerialWriter& out, const FormatInfo& format, std::span<const std::byte> elements) {
  with_format(format, [&]<class F>() {
    for (std::size_t i = 0; i < elements.size(); i += sizeof(F)) {
      F x;
      std::memcpy(&x, &elements[i], sizeof x);
      put_field(out, x);
    }
  });
}

}  // namespace

std::vector<std::byte> Partial::serialise() const {
  const FloatingPointEnvironment environment;
  SerialWriter out{name()};
  out.put(begin_);
  out.put(end_);
  for (const Elements* leaf : {&head_, &tail_}) {
    put_elements(out, *method_->format, leaf->x);
    put_elements(out, *method_->format, leaf->y);
  }
  for (std::size_t i = 0; i < nodes_.size() * form_->lanes; ++i)
    form_->write(states_.data() + i * form_->state_bytes, out);
  out.put_checksum();
  return out.bytes();
}

Partial Partial::deserialise(std::span<const std::byte> bytes, const Method& method) {
  Partial partial = deserialise(bytes, method.backend);
  if (partial.method_ != &method)
    SerialReader::refuse("it holds a partial of " + partial.name() + ", not of " + Partial{method}.name());
  return partial;
}

Partial Partial::deserialise(std::span<const std::byte> bytes, std::string_view backend) {
  const FloatingPointEnvironment environment;
  SerialReader in{bytes};
  in.check_checksum();
  const std::string name = in.name() + "@" + std::string{backend};
  const auto method = std::ranges::find(methods(), name, &Method::name);
  if (method == methods().end()) SerialReader::refuse("this process has no method '" + name + "'");
  const auto begin = in.get<std::uint64_t>(), end = in.get<std::uint64_t>();
  if (begin > end || end >= most_elements) SerialReader::refuse("its range contradicts itself");
  Partial partial{*method, begin};
  const PartialForm& form = *partial.form_;
  const auto get = [&](Elements& leaf, std::uint64_t count) {
    leaf.count = count;
    for (std::vector<std::byte>* input : {&leaf.x, &leaf.y}) {
      if (input == &leaf.y && method->inputs == 1) break;
      const auto read = in.get_bytes(count * method->format->bytes);
      input->assign(read.begin(), read.end());
    }
  };
  // The range determines the leaves that it holds in part, and the subtrees that it holds whole.
  std::uint64_t first = begin, last = end;
  if (form.leaf != 0 && !(form.extend && begin == 0)) {
    const std::uint64_t used = begin % form.leaf, left = used == 0 ? 0 : form.leaf - used;
    first += std::min(left, end - begin);
    last = std::max(first, end - end % form.leaf);
    get(partial.head_, first - begin);
    get(partial.tail_, end - last);
  }
  while (first < last) {
    const bool is_one_node = form.leaf == 0 || form.extend;
    const std::uint64_t count = is_one_node ? last - first : subtree_size(first, last, form.leaf);
    partial.nodes_.push_back({first, count});
    first += count;
    for (std::size_t lane = 0; lane < form.lanes; ++lane) {
      partial.states_.resize(partial.states_.size() + form.state_bytes);
      if (!form.read(in, count / form.lanes, &*partial.states_.end() - form.state_bytes))
        SerialReader::refuse("its states are not those of any elements");
    }
  }
  partial.end_ = end;
  in.finish();
  if (!std::ranges::equal(partial.serialise(), bytes))
    SerialReader::refuse("it has numbers that are not canonical");
  return partial;
}

}  // namespace samesum
