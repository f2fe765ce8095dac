/// Builds ZIP archives and files of gzip for the tests of the readers.
#pragma once

#include <boost/crc.hpp>

#include "harness/input_files.hpp"

namespace samesum::harness {

/// A member as an archive declares it.
struct ZipMember {
  std::string name, content;
  bool deflated = false;
  std::string bytes = {};  ///< compressed; empty: the content in one stored block of deflate
  std::uint32_t crc_error = 0, size_error = 0, stored_error = 0, place_error = 0;
  std::uint16_t flags = 0, method = 0;  ///< method 0: according to `deflated`
  bool zip64 = false;                   ///< write sizes and place in 64 bits
};

inline std::string zip(const std::vector<ZipMember>& members, const std::string& comment = "",
                       bool zip64 = false) {
  std::string file, directory;
  for (const ZipMember& m : members) {
    const auto size = static_cast<std::uint32_t>(m.content.size());
    std::string bytes = m.bytes.empty() ? m.content : m.bytes;
    if (m.deflated && m.bytes.empty()) {
      const auto n = static_cast<std::uint16_t>(size);
      bytes = '\1' + stored<std::uint16_t>({n, static_cast<std::uint16_t>(~n)}) + m.content;
    }
    boost::crc_32_type crc;
    crc.process_bytes(m.content.data(), m.content.size());
    const auto place = static_cast<std::uint32_t>(file.size());
    const auto u16 = [](std::uint16_t x) { return stored<std::uint16_t>({x}); };
    const auto packed = static_cast<std::uint32_t>(bytes.size());
    const std::uint16_t method = m.method ? m.method : m.deflated ? 8 : 0;
    const std::string start = u16(45) + u16(m.flags) + u16(method) + std::string(4, '\0') +
                              stored<std::uint32_t>({crc.checksum() + m.crc_error});
    const std::uint64_t wide[] = {size + std::uint64_t{m.size_error}, packed + std::uint64_t{m.stored_error},
                                  place + std::uint64_t{m.place_error}};
    const std::string extra = m.zip64 ? "\x99\x99" + u16(1) + "x" + u16(1) + u16(24) +
                                            stored<std::uint64_t>({wide[0], wide[1], wide[2]})
                                      : "";
    const std::uint32_t ones = 0xffffffff;
    const auto sizes = m.zip64 ? stored<std::uint32_t>({ones, ones})
                               : stored<std::uint32_t>({packed + m.stored_error, size + m.size_error});
    const std::string name_size = u16(static_cast<std::uint16_t>(m.name.size()));
    file += "PK\3\4" + start + sizes + name_size + u16(0) + m.name + bytes;
    directory += "PK\1\2" + u16(45) + start + sizes + name_size +
                 u16(static_cast<std::uint16_t>(extra.size())) + std::string(10, '\0') +
                 stored<std::uint32_t>({m.zip64 ? ones : place + m.place_error}) + m.name + extra;
  }
  const auto count = static_cast<std::uint16_t>(members.size());
  const std::uint64_t place = file.size();
  const std::string shorts = stored<std::uint16_t>({count, count});
  file += directory;
  if (zip64) {
    const std::uint64_t end = file.size();
    file += "PK\6\6" + stored<std::uint64_t>({44, 45, 0}).erase(12, 4) +
            stored<std::uint64_t>({count, count, directory.size(), place});
    file += "PK\6\7" + std::string(4, '\0') + stored<std::uint64_t>({end}) + std::string("\1\0\0\0", 4);
    return file + "PK\5\6" + std::string(4, '\0') + std::string(12, '\xff') +
           stored<std::uint16_t>({static_cast<std::uint16_t>(comment.size())}) + comment;
  }
  return file + "PK\5\6" + std::string(4, '\0') + shorts +
         stored<std::uint32_t>(
             {static_cast<std::uint32_t>(directory.size()), static_cast<std::uint32_t>(place)}) +
         stored<std::uint16_t>({static_cast<std::uint16_t>(comment.size())}) + comment;
}

/// What gzip makes of a text of less than 64 KiB, without compressing it.
inline std::string gzip(const std::string& content) {
  const auto n = static_cast<std::uint16_t>(content.size());
  boost::crc_32_type crc;
  crc.process_bytes(content.data(), content.size());
  return std::string{"\x1f\x8b\10\0\0\0\0\0\0\3\1", 11} +
         stored<std::uint16_t>({n, static_cast<std::uint16_t>(~n)}) + content +
         stored<std::uint32_t>({crc.checksum(), n});
}

}  // namespace samesum::harness
