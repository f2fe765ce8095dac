#include "harness/dataset.hpp"
#include "harness/downstream/eigen.hpp"
#include "samesum/catalogue/catalogue.hpp"

namespace samesum::harness {
namespace {

using Array = Eigen::ArrayXf;

/// The weights are one array: for each hidden unit the weights of its inputs, its bias and the weight of its
/// output; last the bias of the output.
class Network {
 public:
  Network(const Lesson& lesson, std::span<const float> series)
      : lesson_{lesson}, series_{series.data(), static_cast<Eigen::Index>(series.size())} {
    const Column normal = datasets_matching("normal")[0]->make(
        format_info<fp32>(), static_cast<std::size_t>(lesson.weights()), lesson.seed);
    const Values elements = normal.values();
    for (const float x : elements.as<float>()) weights_.push_back(x / 4);
  }

  /// Predicts every element that has enough elements before it.
  void forward() {
    error_ = Array::Constant(samples(), weights_.back()) - input(lesson_.inputs);
    hidden_.clear();
    for (int h = 0; h < lesson_.hidden; ++h) {
      const float* w = unit(h);
      Array z = Array::Constant(samples(), w[lesson_.inputs]);
      for (int i = 0; i < lesson_.inputs; ++i) z += w[i] * input(i);
      hidden_.push_back(z / (1 + z.abs()));
      error_ += w[lesson_.inputs + 1] * hidden_.back();
    }
  }

  /// Half the gradient of the mean squared error, in the order of the weights.
  template <class Mean> std::vector<float> gradient(const Mean& mean) const {
    std::vector<float> all;
    for (int h = 0; h < lesson_.hidden; ++h) {
      const Array& y = hidden_[static_cast<std::size_t>(h)];
      const float w = unit(h)[lesson_.inputs + 1];
      const Array delta = w * error_ * (1 - y.abs()).square();  // softsign' = (1 - |softsign|)^2
      for (int i = 0; i < lesson_.inputs; ++i) all.push_back(mean(delta * input(i)));
      all.push_back(mean(delta));
      all.push_back(mean(error_ * y));
    }
    all.push_back(mean(error_));
    return all;
  }

  void step(const std::vector<float>& gradient) {
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= lesson_.rate * gradient[i];
  }

  const std::vector<float>& weights() const { return weights_; }
  double loss() {
    forward();
    const Eigen::ArrayXd squares = error_.cast<double>().square();
    const std::span<const double> all{squares.data(), static_cast<std::size_t>(squares.size())};
    return find("exact/fp64")(all).to_double() / static_cast<double>(all.size());
  }

 private:
  Eigen::Index samples() const { return series_.size() - lesson_.inputs; }
  Eigen::Map<const Array> input(int i) const { return {series_.data() + i, samples()}; }
  const float* unit(int h) const { return &weights_[static_cast<std::size_t>(h * (lesson_.inputs + 2))]; }

  Lesson lesson_;
  Eigen::Map<const Array> series_;
  std::vector<float> weights_;
  std::vector<Array> hidden_;
  Array error_;
};

}  // namespace

Trained train(std::span<const float> series, const Lesson& lesson, const Summation& sum) {
  Network network{lesson, series};
  const auto mean = [&](const Array& terms) {
    const std::span<const float> all{terms.data(), static_cast<std::size_t>(terms.size())};
    return static_cast<float>(sum(all).to_double() / static_cast<double>(all.size()));
  };
  for (int k = 0; k < lesson.steps; ++k) {
    network.forward();
    network.step(network.gradient(mean));
  }
  return {network.weights(), network.loss()};
}

}  // namespace samesum::harness
