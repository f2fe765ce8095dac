/// Arrays whose NaNs are missing elements.
#include "harness/input_parts.hpp"
#include "harness/text.hpp"

namespace samesum::harness {

namespace {

/// The elements of another reader that are not NaN.
class PresentElements : public ElementReader {
 public:
  PresentElements(std::unique_ptr<ElementReader> all, std::string name, bool has_places)
      : ElementReader{all->format()}, all_{std::move(all)}, name_{std::move(name)}, has_places_{has_places} {}

  std::vector<std::uint64_t> shape() const override { return all_->shape(); }
  std::uint64_t skip(std::uint64_t n) override {
    std::uint64_t done = 0;
    while (done < n && find_portion()) {
      const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(n - done, present_.size() - next_));
      next_ += now;
      done += now;
    }
    return done;
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> all = all_->notes();
    if (left_out_ > 0)
      all.push_back(printable(name_) + ": " + std::to_string(left_out_) +
                    (left_out_ == 1 ? " element was" : " elements were") + " left out: NaN");
    return all;
  }

 private:
  void fill_portion() override {
    portion_ = Column{&format(), {}};
    if (find_portion()) {
      portion_ = all_->portion();
      const std::span kept = std::span{present_}.subspan(next_);
      keep_elements(portion_, kept);
      if (has_places_)
        for (const std::size_t i : kept) portion_.places.push_back(before_ + i);
      next_ = present_.size();
    }
    portion_.records = before_ + all_->portion().size();
  }

  /// Moves to the next portion with an element that is present, unless one is left in this portion.
  bool find_portion() {
    while (next_ == present_.size()) {
      before_ += all_->portion().size();
      next_ = 0;
      present_.clear();
      if (!all_->next()) return false;
      const Column& portion = all_->portion();
      with_format(format(), [&]<class F>() {
        for (std::size_t i = 0; i < portion.size(); ++i)
          if (!is_nan_bits<F>(to_bits(portion.values().as<F>()[i]))) present_.push_back(i);
      });
      left_out_ += portion.size() - present_.size();
    }
    return true;
  }

  std::unique_ptr<ElementReader> all_;
  std::string name_;
  bool has_places_;
  std::vector<std::size_t> present_;         ///< indices in the portion of `all_`
  std::size_t next_ = 0;                     ///< the first of them that is left
  std::uint64_t before_ = 0, left_out_ = 0;  ///< elements before the portion; NaNs so far
};

}  // namespace

std::unique_ptr<ElementReader> without_nans(std::unique_ptr<ElementReader> all, const std::string& name,
                                            bool has_places) {
  return std::make_unique<PresentElements>(std::move(all), name, has_places);
}

}  // namespace samesum::harness
