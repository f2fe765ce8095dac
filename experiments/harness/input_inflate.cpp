/// Deflated members of archives and files compressed by gzip, decompressed by zlib.
#include <zlib.h>

#include <array>

#include "harness/input_parts.hpp"

namespace samesum::harness {

namespace {

// Number of bits of the largest window, negative for bare compressed bytes and 16 more for a gzip file, as
// zlib encodes what surrounds them.
constexpr int raw_stream = -15, gzip_stream = 15 + 16;

class InflatedBytes : public Bytes {
 public:
  InflatedBytes(std::unique_ptr<Bytes> compressed, std::string name, int stream)
      : compressed_{std::move(compressed)}, name_{std::move(name)}, is_gzip_{stream == gzip_stream} {
    if (inflateInit2(&state_, stream) != Z_OK) throw std::bad_alloc{};
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
    fill_block();
    const auto room = static_cast<uInt>(std::min<std::size_t>(to.size(), 1u << 30));
    state_.next_out = reinterpret_cast<Bytef*>(to.data());
    state_.avail_out = room;
    const int status = inflate(&state_, Z_NO_FLUSH);
    // Without further input, Z_BUF_ERROR means that the stream is cut short.
    if (status != Z_OK && status != Z_STREAM_END)
      throw InputError{name_, std::string{"damaged: its compressed bytes are "} +
                                  (status == Z_BUF_ERROR ? "cut short" : "not valid")};
    if (status == Z_STREAM_END) end_stream();
    return room - state_.avail_out;
  }

  void fill_block() {
    if (state_.avail_in > 0) return;
    state_.next_in = block_.data();
    state_.avail_in = static_cast<uInt>(compressed_->read(std::as_writable_bytes(std::span{block_})));
  }

  /// A file of gzip holds one stream or several, one after another. Zeros may follow each, as tape drives
  /// pad.
  void end_stream() {
    if (is_gzip_) skip_zeros();
    ended_ = !is_gzip_ || state_.avail_in == 0;
    if (!ended_) inflateReset(&state_);
  }

  void skip_zeros() {
    for (fill_block(); state_.avail_in > 0 && *state_.next_in == 0; fill_block()) {
      ++state_.next_in;
      --state_.avail_in;
    }
  }

  std::unique_ptr<Bytes> compressed_;
  std::string name_;
  z_stream state_ = {};
  std::array<Bytef, 1 << 15> block_;
  bool is_gzip_, ended_ = false;
};

}  // namespace

std::unique_ptr<Bytes> open_deflated(std::unique_ptr<Bytes> compressed, const std::string& name) {
  return std::make_unique<InflatedBytes>(std::move(compressed), name, raw_stream);
}

std::unique_ptr<Bytes> open_gzip(std::unique_ptr<Bytes> compressed, const std::string& name) {
  return std::make_unique<InflatedBytes>(std::move(compressed), name, gzip_stream);
}

}  // namespace samesum::harness
