/// The catalogue: collects the methods of all backends, finds them by name, and explains wrong names.
#include "samesum/catalogue/catalogue.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "samesum/base/environment.hpp"
#include "samesum/base/text.hpp"
#include "samesum/catalogue/backend.hpp"
#include "samesum/catalogue/describe.hpp"
#include "samesum/catalogue/join.hpp"
#include "samesum/catalogue/nearest.hpp"
#include "samesum/catalogue/states.hpp"

namespace samesum {
namespace {

std::vector<std::string_view> operation_names() {
  std::vector<std::string_view> all;
  for (const OperationFacts& f : operation_facts) all.push_back(f.name);
  return all;
}

/// Copies the functions that `to` lacks.
template <class Pointers> void fill(Pointers& to, const Pointers& from) {
  for (std::size_t i = 0; i < to.size(); ++i)
    if (!to[i]) to[i] = from[i];
}

/// Adds the functions of another part of the same method.
void merge(Code& code, const Code& other) {
  fill(code.sum, other.sum);
  fill(code.watch, other.watch);
  fill(code.host.any, other.host.any);
  fill(code.host.vector, other.host.vector);
  fill(code.device.any, other.device.any);
  fill(code.device.vector, other.device.vector);
  if (other.partial_form) code.partial_form = other.partial_form;
  if (other.merge_subtrees) code.merge_subtrees = other.merge_subtrees;
}

/// Decides what runs a vector: a function for vectors, else the one for sums, else the one for any layout.
void complete(Code& code) {
  for (std::size_t i = 0; i < Formats::size; ++i)
    if (code.sum[i] && !code.host.vector[i]) code.host.vector[i] = run_sum;
  fill(code.host.vector, code.host.any);
  fill(code.device.vector, code.device.any);
}

MethodTable all_methods() {
  const FloatingPointEnvironment environment;  // also for the GPU driver, which starts here
  // Readers expect methods of one operation together, and all formats of a method together.
  std::vector<const Backend*> by_name;
  for (const Backend* backend : Backends::all())
    if (backend->absence().empty()) by_name.push_back(backend);
  std::ranges::sort(by_name, {}, &Backend::name);
  std::vector<std::vector<Entry>> entries;
  for (const Backend* backend : by_name) entries.push_back(backend->entries());
  MethodTable all;
  for (const std::string_view operation : operation_names())
    for (std::size_t i = 0; i < by_name.size(); ++i) {
      const auto add = [&](auto belongs) {
        std::vector<Entry> some;
        for (const Entry& e : entries[i])
          if (e.facts.operation->name == operation && belongs(e.facts.accumulator)) some.push_back(e);
        all.add(some, *by_name[i]);
      };
      add([](std::string_view accumulator) { return !takes_no_order(accumulator); });
      for (const std::string_view last : accumulators_without_order)
        add([last](std::string_view accumulator) { return accumulator == last; });
    }
  all.add_to_all(joined([]<std::size_t index>() { return states<index>(); }, {}));
  return all;
}

// --- messages for wrong names ----------------------------------------------------------------------------

/// Words of the catalogue, and words that users type for them.
constexpr std::pair<std::string_view, std::string_view> synonyms[] = {
    {"sum", " total "},
    {"mean", " avg average "},
    {"sum_of_magnitudes", " l1 asum "},
    {"dot", " inner "},
    {"norm", " l2 nrm2 "},
    {"prod", " product "},
    {"logsumexp", " lse "},
    {"moments", " variance var std stddev standard_deviation "},
    {"min", " minimum amin "},
    {"max", " maximum amax "},
    {"log_softmax", " logsoftmax "},
    {"cumsum", " scan prefix_sum cumulative_sum inclusive_scan exclusive_scan "},
    {"cumprod", " cumulative_prod "},
    {"cumlogsumexp", " logcumsumexp "},
    {"rolling_sum", " moving_sum sliding_sum move_sum "},
    {"rolling_mean", " moving_average rolling_average move_mean "},
    {"rolling_var", " rolling_moments rolling_variance move_var "},
    {"scatter_add", " index_add segment_sum bincount group_by "},
    {"scatter_count", " histogram "},
    {"serial", " naive loop left_fold "},
    {"plain", " simple "},
    {"kahan", " compensated "},
    {"double_word", " dd "},
    {"exact", " superaccumulator "},
    {"fixed_point", " fixed fixedpoint integer "},
    {"hopper", " tensor_cores tensor_core matrix_unit "},
    {"fp16", " half float16 "},
    {"bf16", " bfloat16 "},
    {"fp32", " float float32 single "},
    {"fp64", " double float64 "},
    {"cpu", " host "},
    {"cuda", " gpu "}};

/// The different values of a field among some methods.
std::vector<std::string_view> values_of(std::span<const Method> among, std::string Method::*field) {
  std::vector<std::string_view> all;
  for (const Method& m : among)
    if (const std::string& value = m.*field; !value.empty() && std::ranges::count(all, value) == 0)
      all.push_back(value);
  return all;
}

/// Explains a wrong word: a synonym, a similar word, or the list of valid words.
std::string about_word(std::string_view word, const NameFields& known, std::string_view operation) {
  for (const auto& [ours, theirs] : synonyms)
    if (theirs.find(" " + std::string{word} + " ") != theirs.npos)
      return quoted(word) + " is called " + quoted(ours) + " here";
  const std::string text = quoted(word) + " is unknown or out of place";
  const std::span<const Method> of = methods(operation);
  const auto orders = values_of(of, &Method::order), accumulators = values_of(of, &Method::accumulator);
  std::vector<std::string_view> words;
  const auto append = [&words](const auto& more) { std::ranges::copy(more, std::back_inserter(words)); };
  const bool is_backend = known.backend == word;
  if (is_backend) {
    append(backends);
  } else {
    if (known.operation.empty() && known.order.empty() && known.accumulator.empty())
      append(operation_names());
    append(orders);
    append(accumulators);
    for (const FormatInfo& f : formats) words.push_back(f.name);
  }
  const auto far = [&](std::string_view w) { return detail::distance(word, w); };
  const std::string_view nearest = *std::ranges::min_element(words, {}, far);
  if (far(nearest) == 0)
    return text + "; the order of the fields is operation/order/accumulator/format@backend";
  if (detail::is_near(far(nearest), word)) return text + "; did you mean " + quoted(nearest) + "?";
  if (is_backend) return text + "; the backends are " + listed(words);
  return text + "; " + std::string{operation} + " has the orders " + listed(orders) + ", the accumulators " +
         listed(accumulators) + "; the operations are " + listed(operation_names());
}

/// Names the methods of the same operation that have the most fields in common.
std::string nearest_to(const NameFields& f) {
  std::vector<const Method*> all;
  for (const Method& m : methods(f.operation)) all.push_back(&m);
  const auto differences = [&](const Method* m) {
    return 2 * (m->backend != f.backend) + 2 * (m->accumulator != f.accumulator) + (m->order != f.order) +
           (m->format->name != f.format);
  };
  std::ranges::stable_sort(all, {}, differences);
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 3); ++i) names.push_back(all[i]->name);
  return listed(names);
}

/// The orders and accumulators among which a name without both leaves the choice, as they are typed.
std::vector<std::string_view> choices(const NameFields& f) {
  std::vector<std::string_view> all;
  for (const Method& m : methods(f.operation)) {
    if (m.format->name != f.format || m.backend != f.backend) continue;
    const std::size_t begin = m.operation.size() + 1;
    all.push_back(std::string_view{m.name}.substr(begin, m.name.find("/" + std::string{f.format}) - begin));
  }
  return all;
}

const Method* method_with(const NameFields& f) {
  const std::string full = full_name(f.operation, f.order, f.accumulator, f.format, f.backend);
  const auto found = std::ranges::find(methods(), full, &Method::name);
  return found == methods().end() ? nullptr : &*found;
}

[[noreturn]] void refuse(std::string_view name, const std::string& why) {
  throw std::invalid_argument("samesum: no method " + quoted(name) + why);
}

/// What decides about combinations with an order, as values.
struct OrderFacts {
  std::string_view name;
  bool (*is_combination)(const OperationFacts&, bool);
  std::string_view (*refusal)(const OperationFacts&, bool, std::string_view, std::string_view);
};

/// The combinations that a backend refuses. Loops at run time, since there are thousands of combinations.
std::vector<Unsupported> all_unsupported() {
  std::vector<const OperationFacts*> operations;
  Operations::for_each([&]<class Operation>() { operations.push_back(&Operation::facts); });
  std::vector<OrderFacts> orders;
  Orders::for_each([&]<class Order>() {
    orders.push_back({Order::name, is_combination<Order>, refusal_of_build<Order>});
  });
  std::vector<Unsupported> all;
  const auto add = [&](std::string_view operation, std::string_view order, std::string_view accumulator,
                       const FormatInfo& format, std::string_view backend, std::string_view reason) {
    if (!reason.empty())
      all.push_back({full_name(operation, order, accumulator, format.name, backend), std::string{reason}});
  };
  for (const OperationFacts* o : operations)
    for (const OrderFacts& order : orders)
      for (const std::string_view accumulator : accumulator_names) {
        const bool is_plain = accumulator == accumulator_names.front();
        if (!order.is_combination(*o, is_plain)) continue;
        for (const FormatInfo& f : formats)
          for (const std::string_view backend : backends)
            add(o->name, o->has_order ? order.name : "", o->has_accumulator ? accumulator : "", f, backend,
                order.refusal(*o, is_plain, f.name, backend));
      }
  for (const OperationFacts* o : operations) {
    if (!o->can_be_exact) continue;
    for (const std::string_view accumulator : accumulators_without_order)
      for (const FormatInfo& f : formats)
        for (const std::string_view backend : backends)
          add(o->name, "", accumulator, f, backend, refusal_without_order(*o, accumulator, f.name, backend));
  }
  return all;
}

Method method_of(const Facts& f) {
  const OperationFacts& operation = *f.operation;
  Method m{};
  m.name = f.called.empty() ? full_name(operation.name, f.order, f.accumulator, f.format->name, f.backend)
                            : full_name(f.called, "", "", f.format->name, f.backend);
  m.operation = operation.name;
  m.summary = operation.summary;
  m.order = f.order;
  m.accumulator = f.accumulator;
  m.format = f.format;
  m.backend = f.backend;
  m.promise = f.promise;
  m.inputs = operation.inputs;
  m.results = operation.results;
  m.returns_index = operation.returns_index;
  m.has_result_per_element = operation.has_result_per_element;
  m.keeps_format = operation.keeps_format;
  m.takes_keys = operation.takes_keys;
  m.takes_window = operation.takes_window;
  m.takes_grid = f.takes_grid;
  m.can_combine = operation.can_combine;
  m.is_slow = f.is_slow;
  m.state_bytes = f.state_bytes;
  m.operations_per_element = f.operations_per_element;
  m.height_formula = f.height_formula();
  return m;
}

}  // namespace

std::string full_name(std::string_view operation, std::string_view order, std::string_view accumulator,
                      std::string_view format, std::string_view backend) {
  std::string name{operation};
  for (const std::string_view field : {order, accumulator, format})
    if (!field.empty()) name.append("/").append(field);
  return name.append("@").append(backend);
}

void append(std::vector<Entry>& all, const Entry& entry) { all.push_back(entry); }

void MethodTable::add(const std::vector<Entry>& entries, const Backend& backend) {
  std::map<std::string, std::size_t> place;
  for (const Entry& entry : entries) {
    Method method = method_of(entry.facts);
    const auto [found, is_new] = place.try_emplace(method.name, codes_.size());
    if (is_new) {
      Code& code = codes_.emplace_back(entry.code);
      code.backend = &backend;
      code.run_by(methods.emplace_back(std::move(method)));
    } else {
      merge(codes_[found->second], entry.code);
    }
  }
  for (const auto& [name, at] : place) complete(codes_[at]);
}

void MethodTable::add_to_all(const std::vector<Entry>& entries) {
  const auto without_backend = [](const std::string& name) { return name.substr(0, name.find('@')); };
  std::map<std::string, const Code*> parts;
  for (const Entry& e : entries) parts[without_backend(method_of(e.facts).name)] = &e.code;
  for (std::size_t i = 0; i < methods.size(); ++i)
    if (const auto part = parts.find(without_backend(methods[i].name)); part != parts.end())
      merge(codes_[i], *part->second);
}

std::span<const Method> methods() {
  static const MethodTable all = all_methods();
  return all.methods;
}

std::span<const Method> methods(std::string_view operation) {
  const auto same = [](const Method& m) { return std::string_view{m.operation}; };
  const auto first = std::ranges::find(methods(), operation, same);
  return {first, std::ranges::find_if(first, methods().end(),
                                      [&](const Method& m) { return m.operation != operation; })};
}

std::span<const Unsupported> unsupported() {
  static const std::vector<Unsupported> table = all_unsupported();
  return table;
}

std::span<const Absent> absent() {
  static const std::vector<Absent> table = [] {
    const FloatingPointEnvironment environment;
    std::vector<Absent> all;
    for (const Backend* backend : Backends::all())
      if (const std::string reason = backend->absence(); !reason.empty())
        all.push_back({std::string{backend->name()}, reason});
    return all;
  }();
  return table;
}

const Method& find(std::string_view name, NameDefaults defaults) {
  if (name.empty()) refuse(name, ": the name is empty; use one such as exact or tree/kahan/fp32@cpu");
  const ParsedName parsed = parse_name(name);
  const NameFields f = with_defaults(parsed.fields, defaults);
  if (!parsed.wrong.empty()) refuse(name, ": " + about_word(parsed.wrong, parsed.fields, f.operation));
  if (f.format.empty())
    refuse(name, ": the name has no format; add one of " + listed(formats, ", ", &FormatInfo::name));
  for (const NameFields& meant : {f, completed(f)})
    if (const Method* found = method_with(meant)) return *found;
  if (f.order.empty() && f.accumulator.empty())
    if (const auto open = choices(f); !open.empty())
      refuse(name, ": the name leaves the order and the accumulator open; use one of " + listed(open));
  const auto name_of = [](const NameFields& of) {
    return full_name(of.operation, of.order, of.accumulator, of.format, of.backend);
  };
  for (const NameFields& meant : {f, completed(f)})
    if (const auto refused = std::ranges::find(unsupported(), name_of(meant), &Unsupported::name);
        refused != unsupported().end())
      refuse(refused->name, ": " + refused->reason);
  const std::string full = name_of(f);
  for (const Absent& a : absent())
    if (f.backend == a.backend) refuse(full, " here: " + a.reason);
  refuse(full, "; the nearest are " + nearest_to(f));
}

const Method* default_method(std::string_view operation, const FormatInfo& input, std::string_view backend) {
  const auto merit = [&](const Method& m) {
    return std::tuple{m.accumulator == Exact::name, m.order == "tree" && m.accumulator == "plain",
                      m.format == &input};
  };
  const Method* best = nullptr;
  for (const Method& m : methods(operation))
    if (m.backend == backend && (m.format == &input || m.format == &format_info<fp32>() || m.inputs == 0) &&
        m.accepts(input) && (!best || merit(m) > merit(*best)))
      best = &m;
  return best;
}

const Method& find_on(std::string_view backend, const Method& method) {
  return find(full_name(method.operation, method.order, method.accumulator, method.format->name, backend));
}

}  // namespace samesum
