/// Deflated members of archives, decompressed by zlib.
#include <zlib.h>

#include <array>

#include "harness/input_parts.hpp"

namespace samesum::harness {

namespace {

class InflatedBytes : public Bytes {
 public:
  InflatedBytes(std::unique_ptr<Bytes> compressed, std::string name)
      : compressed_{std::move(compressed)}, name_{std::move(name)} {
    constexpr int raw_stream = -15;  // the largest window, and no header
    if (inflateInit2(&state_, raw_stream) != Z_OK) throw std::bad_alloc{};
  }
  InflatedBytes(const InflatedBytes&) = delete;
  InflatedBytes& operator=(const InflatedBytes&) = delete;
  ~InflatedBytes() override { inflateEnd(&state_); }

  std::size_t read(std::span<std::byte> to) override {
    std::size_t done = 0;
    while (done < to.size() && !ended_) done += read_some(to.subspan(done));
    return done;
  }
  std::optional<std::uint64_t> left() override { return {}; }

 private:
  std::size_t read_some(std::span<std::byte> to) {
    if (state_.avail_in == 0) {
      state_.next_in = block_.data();
      state_.avail_in = static_cast<uInt>(compressed_->read(std::as_writable_bytes(std::span{block_})));
    }
    const auto room = static_cast<uInt>(std::min<std::size_t>(to.size(), 1u << 30));
    state_.next_out = reinterpret_cast<Bytef*>(to.data());
    state_.avail_out = room;
    const int status = inflate(&state_, Z_NO_FLUSH);
    ended_ = status == Z_STREAM_END;
    // Without further input, Z_BUF_ERROR means that the stream is cut short.
    if (status != Z_OK && !ended_) throw InputError{name_, "damaged: its compressed bytes are not valid"};
    return room - state_.avail_out;
  }

  std::unique_ptr<Bytes> compressed_;
  std::string name_;
  z_stream state_ = {};
  std::array<Bytef, 1 << 15> block_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Bytes> open_deflated(std::unique_ptr<Bytes> compressed, const std::string& name) {
  return std::make_unique<InflatedBytes>(std::move(compressed), name);
}

}  // namespace samesum::harness
