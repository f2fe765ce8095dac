/// Members of .npz files, which are ZIP archives of .npy files (APPNOTE.TXT of PKWARE, with ZIP64).
#include <boost/crc.hpp>
#include <map>

#include "harness/input_parts.hpp"
#include "harness/text.hpp"

namespace samesum::harness {

namespace {

constexpr std::uint32_t end_signature = 0x06054b50, end64_signature = 0x06064b50,
                        locator_signature = 0x07064b50, entry_signature = 0x02014b50,
                        local_signature = 0x04034b50;
constexpr std::size_t end_size = 22, end64_size = 56, locator_size = 20, entry_size = 46, local_size = 30;
constexpr std::size_t longest_rest = 65536;  // behind the end; a comment has at most 65535 bytes
constexpr std::string_view npy = ".npy";

struct Member {
  unsigned flags, method;
  std::uint32_t crc;
  std::uint64_t stored, size, place;
};

/// Fields of a record, little-endian.
class Record {
 public:
  explicit Record(std::span<const std::byte> bytes) : bytes_{bytes} {}
  unsigned u16(std::size_t at) const { return load<std::uint16_t>(&bytes_[at], false); }
  std::uint32_t u32(std::size_t at) const { return load<std::uint32_t>(&bytes_[at], false); }
  std::uint64_t u64(std::size_t at) const { return load<std::uint64_t>(&bytes_[at], false); }

 private:
  std::span<const std::byte> bytes_;
};

/// A range of a file.
class RangeBytes : public Bytes {
 public:
  RangeBytes(std::unique_ptr<Bytes> file, std::uint64_t size) : file_{std::move(file)}, left_{size} {}

  std::size_t read(std::span<std::byte> to) override {
    const std::size_t n =
        file_->read(to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), left_))));
    left_ -= n;
    return n;
  }
  std::optional<std::uint64_t> left() override { return left_; }

 private:
  std::unique_ptr<Bytes> file_;
  std::uint64_t left_;
};

/// The bytes of a member. Checks that their number and their CRC-32 are those that the archive declares.
class MemberBytes : public Bytes {
 public:
  MemberBytes(std::unique_ptr<Bytes> bytes, const Member& member, std::string name)
      : bytes_{std::move(bytes)}, left_{member.size}, declared_crc_{member.crc}, name_{std::move(name)} {}

  std::size_t read(std::span<std::byte> to) override {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), left_));
    const std::size_t n = bytes_->read(to.first(wanted));
    if (n < wanted) throw InputError{name_, "damaged: it has fewer bytes than the archive declares"};
    crc_.process_bytes(to.data(), n);
    left_ -= n;
    if (left_ == 0) check_end();
    return n;
  }
  std::optional<std::uint64_t> left() override { return left_; }

 private:
  void check_end() {
    std::byte more;
    if (bytes_->read({&more, 1}) > 0)
      throw InputError{name_, "damaged: it has more bytes than the archive declares"};
    if (crc_.checksum() != declared_crc_)
      throw InputError{name_, "damaged: its checksum (CRC-32) does not match"};
  }

  std::unique_ptr<Bytes> bytes_;
  std::uint64_t left_;
  std::uint32_t declared_crc_;
  boost::crc_32_type crc_;
  std::string name_;
};

class Archive {
 public:
  Archive(std::unique_ptr<Bytes> file, std::string name) : file_{std::move(file)}, name_{std::move(name)} {
    if (!file_->left()) file_ = std::make_unique<MemoryBytes>(read_rest(*file_));
    size_ = *file_->left();
    read_directory();
  }

  /// Finds the member with this name, with or without .npy, or the only one if the name is empty, and returns
  /// its name without .npy.
  const std::pair<const std::string, Member>& find(const std::string& wanted) const {
    if (wanted.empty() && members_.size() == 1) return *members_.begin();
    if (wanted.ends_with(npy))
      if (const auto at = members_.find(wanted.substr(0, wanted.size() - npy.size())); at != members_.end())
        return *at;
    if (const auto at = members_.find(wanted); at != members_.end()) return *at;
    if (members_.empty()) refuse("has no .npy member; numpy.savez writes archives of such members");
    std::string listing;
    for (const auto& [name, member] : members_) append_shown(listing, name);
    if (wanted.empty())
      refuse("has " + std::to_string(members_.size()) + " members: " + listing +
             "; choose one as in FILE.npz:MEMBER");
    refuse("no member " + shown(wanted) + "; it has " + listing);
  }

  std::unique_ptr<Bytes> open(const Member& member, const std::string& name) && {
    constexpr unsigned encrypted = 1, stored = 0, deflated = 8;
    if (member.flags & encrypted) throw InputError{name, "is encrypted; save it without a password"};
    if (member.method != stored && member.method != deflated)
      throw InputError{name, "is compressed by method " + std::to_string(member.method) +
                                 "; only stored and deflated members can be read, as numpy.savez saves them"};
    const std::uint64_t place = start_ + member.place;
    const std::vector<std::byte> head = bytes_at(place, local_size);
    const Record local{head};
    if (local.u32(0) != local_signature) throw InputError{name, "damaged: no header where it begins"};
    const std::uint64_t names = local.u16(26) + std::uint64_t{local.u16(28)};
    const std::uint64_t start = place + local_size + names;
    if (start > size_ || member.stored > size_ - start)
      throw InputError{name, "damaged: it ends behind the end of the archive"};
    if (member.method == stored && member.stored != member.size)
      throw InputError{name, "damaged: the archive declares two sizes of it"};
    file_->move_to(start);
    std::unique_ptr<Bytes> bytes = std::make_unique<RangeBytes>(std::move(file_), member.stored);
    if (member.method == deflated) bytes = open_deflated(std::move(bytes), name);
    return std::make_unique<MemberBytes>(std::move(bytes), member, name);
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const { throw InputError{name_, problem}; }

  std::vector<std::byte> bytes_at(std::uint64_t place, std::uint64_t n) {
    if (place > size_ || n > size_ - place || !file_->move_to(place))
      refuse("damaged archive: a part of it lies behind its end");
    std::vector<std::byte> bytes(static_cast<std::size_t>(n));
    if (file_->read(bytes) < bytes.size()) refuse("cut short while it was read");
    return bytes;
  }

  /// Returns the place of the record that ends the archive: the last one whose comment ends with the file, or
  /// else the last one, behind which there are other bytes.
  std::size_t find_end(std::span<const std::byte> last) const {
    std::optional<std::size_t> with_more_behind;
    for (std::size_t at = last.size() < end_size ? 0 : last.size() - end_size + 1; at-- > 0;) {
      const Record r{last.subspan(at)};
      if (r.u32(0) != end_signature) continue;
      if (at + end_size + r.u16(20) == last.size()) return at;
      if (!with_more_behind) with_more_behind = at;
    }
    if (!with_more_behind) refuse("not a .npz file: it has no end of a ZIP archive; is it cut short?");
    return *with_more_behind;
  }

  void read_directory() {
    const std::uint64_t tail = std::min<std::uint64_t>(size_, end_size + longest_rest);
    const std::vector<std::byte> last = bytes_at(size_ - tail, tail);
    const std::size_t end = find_end(last);
    const Record record{std::span{last}.subspan(end)};
    std::uint64_t count = record.u16(10), bytes = record.u32(12), place = record.u32(16),
                  directory_end = size_ - tail + end;
    if (count == 0xffff || bytes == 0xffffffff || place == 0xffffffff) {
      if (directory_end < locator_size) refuse("damaged archive: it has no ZIP64 locator");
      const std::vector<std::byte> locator = bytes_at(directory_end - locator_size, locator_size);
      if (Record{locator}.u32(0) == locator_signature) {
        directory_end = Record{locator}.u64(8);
        const std::vector<std::byte> end64 = bytes_at(directory_end, end64_size);
        if (Record{end64}.u32(0) != end64_signature) refuse("damaged archive: it has no ZIP64 end");
        count = Record{end64}.u64(32), bytes = Record{end64}.u64(40), place = Record{end64}.u64(48);
      }
    }
    if (bytes > directory_end || place > directory_end - bytes)
      refuse("damaged archive: a part of it lies behind its end");
    start_ = directory_end - bytes - place;
    const std::vector<std::byte> directory = bytes_at(start_ + place, bytes);
    std::size_t at = 0;
    for (; count > 0; --count) at += read_entry(std::span{directory}.subspan(at));
  }

  /// Reads an entry of the directory, and returns its size.
  std::size_t read_entry(std::span<const std::byte> bytes) {
    if (bytes.size() < entry_size || Record{bytes}.u32(0) != entry_signature)
      refuse("damaged archive: a bad entry of its directory");
    const Record r{bytes};
    const std::size_t name = r.u16(28), extra = r.u16(30), all = entry_size + name + extra + r.u16(32);
    if (bytes.size() < all) refuse("damaged archive: a bad entry of its directory");
    Member m{r.u16(8), r.u16(10), r.u32(16), r.u32(20), r.u32(24), r.u32(42)};
    read_zip64(m, bytes.subspan(entry_size + name, extra));
    const std::string_view text{reinterpret_cast<const char*>(&bytes[0]) + entry_size, name};
    if (text.ends_with(npy)) members_.insert_or_assign(std::string{text.substr(0, name - npy.size())}, m);
    return all;
  }

  /// Reads the 64-bit fields that replace those of 32 bits that are all ones.
  void read_zip64(Member& m, std::span<const std::byte> extra) const {
    while (extra.size() >= 4) {
      const Record r{extra};
      const std::size_t size = r.u16(2);
      if (size > extra.size() - 4) break;
      if (r.u16(0) == 1) {
        std::size_t at = 4;
        for (std::uint64_t* field : {&m.size, &m.stored, &m.place})
          if (*field == 0xffffffff && at + 8 <= size + 4) {
            *field = r.u64(at);
            at += 8;
          }
        return;
      }
      extra = extra.subspan(4 + size);
    }
  }

  std::unique_ptr<Bytes> file_;
  std::string name_;
  std::uint64_t size_ = 0, start_ = 0;     ///< start_: of the archive, which other bytes may precede
  std::map<std::string, Member> members_;  ///< by their names without .npy; the last one of a name, as NumPy
};

}  // namespace

std::unique_ptr<ElementReader> open_npz(Source source) {
  Archive archive{std::move(source.bytes), source.name};
  const auto [member_name, member] = archive.find(source.member);
  source.name += ":" + printable(member_name, false);
  source.bytes = std::move(archive).open(member, source.name);
  return open_npy(std::move(source));
}

}  // namespace samesum::harness
