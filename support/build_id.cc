#include "support/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstring>

namespace kiln {

namespace {

struct Search {
  const void* inside;  // an address in the object that is wanted
  std::string id;
};

std::string id_in_notes(const char* at, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    size_t name = (note.n_namesz + 3u) & ~3u, desc = (note.n_descsz + 3u) & ~3u;
    size_t step = sizeof note + name + desc;
    if (step > size) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !std::memcmp(at + sizeof note, "GNU", 4)) {
      std::string hex;
      for (size_t i = 0; i < note.n_descsz; ++i)
        hex += fmt::format("{:02x}", static_cast<unsigned char>(at[sizeof note + name + i]));
      return hex;
    }
    at += step;
    size -= step;
  }
  return {};
}

int visit(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool holds = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = object->dlpi_phdr[i];
    uintptr_t begin = object->dlpi_addr + p.p_vaddr, at = reinterpret_cast<uintptr_t>(search.inside);
    holds = holds || (p.p_type == PT_LOAD && at >= begin && at < begin + p.p_memsz);
  }
  if (!holds) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.id.empty(); ++i) {
    const ElfW(Phdr)& p = object->dlpi_phdr[i];
    if (p.p_type == PT_NOTE)
      search.id = id_in_notes(reinterpret_cast<const char*>(object->dlpi_addr + p.p_vaddr), p.p_memsz);
  }
  return 1;
}

}  // namespace

const std::string& build_id() {
  static const std::string kId = [] {
    Search search{reinterpret_cast<const void*>(&build_id), {}};
    dl_iterate_phdr(visit, &search);
    return search.id;
  }();
  return kId;
}

}  // namespace kiln
