// Answers the instruction cpuid for a library as a processor of the level x86-64-v3 would: without AVX-512, and without
// other vector instructions that came after AVX2. Each cpuid becomes ud2, of the same two bytes, and a handler of SIGILL
// answers in its place. Others set handlers of SIGILL too: Python's faulthandler, and LLVM in PoCL, which at any signal
// restores those that it has found. So sigaction, in memory, becomes a function that keeps theirs behind ours.
#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { FEATURES = 7, MOST = 256 };  // the leaf that tells of vector instructions; cpuids
static const uint32_t EBX = 1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31;
static const uint32_t ECX = 1u << 1 | 1u << 6 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 11 | 1u << 12 | 1u << 14;
static const uint32_t EDX = 1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25;
typedef int (*Sigaction)(int signal, const struct sigaction *action, struct sigaction *before);
static Sigaction set;          // libc's own
static struct sigaction kept;  // the others' action for SIGILL
static int lets_go;            // whether that is in force, as an instruction was illegal indeed
static const uint8_t *hidden[MOST];
static int count;

static int is_hidden(const uint8_t *at) {
  for (int i = 0; i < count; ++i)
    if (hidden[i] == at) return 1;
  return 0;
}

static void answer(int signal, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  if (info->si_code <= 0 || !is_hidden((const uint8_t *)registers[REG_RIP])) {
    lets_go = 1;
    set(signal, &kept, 0);
    if (info->si_code <= 0) raise(signal);  // a process sent it; else the instruction is tried again
    return;
  }
  uint32_t leaf = registers[REG_RAX], part = registers[REG_RCX], a, b, c, d;
  __cpuid_count(leaf, part, a, b, c, d);
  if (leaf == FEATURES) {
    if (part == 0) {
      b &= ~EBX;
      c &= ~ECX;
      d &= ~EDX;
    } else {
      a = b = c = d = 0;
    }
  }
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

// Takes the place of sigaction.
static int keep(int signal, const struct sigaction *action, struct sigaction *before) {
  if (signal == __SIGRTMIN || signal == __SIGRTMIN + 1) {  // libc's own signals
    errno = EINVAL;
    return -1;
  }
  if (signal != SIGILL || lets_go) return set(signal, action, before);
  const struct sigaction next = action ? *action : kept;
  if (before) *before = kept;
  kept = next;
  return 0;
}

// Overwrites code; returns 0, or -1 where that is not allowed.
static int overwrite(uint8_t *at, const void *code, size_t size) {
  uint8_t *page = (uint8_t *)((uintptr_t)at & ~(uintptr_t)4095);
  if (mprotect(page, at + size - page, PROT_READ | PROT_WRITE | PROT_EXEC)) return -1;
  memcpy(at, code, size);
  return mprotect(page, at + size - page, PROT_READ | PROT_EXEC);
}

// Sets the handler, for good.
static int begin(void) {
  uint8_t *taken = dlsym(RTLD_DEFAULT, "sigaction");
  const Sigaction replacement = keep;
  uint8_t jump[14] = {0xff, 0x25};  // to the address that follows
  memcpy(jump + 6, &replacement, 8);
  set = (Sigaction)dlsym(RTLD_DEFAULT, "__libc_sigaction");  // which glibc's sigaction jumps to
  const struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
  if (!taken || !set || set(SIGILL, &action, &kept)) return -1;
  return overwrite(taken, jump, sizeof jump);
}

// Replaces the cpuid at an address; returns 0, or -1 where none is there, or too many, or code cannot be written.
int hide(uint8_t *at) {
  if (at[0] != 0x0f || at[1] != 0xa2 || count == MOST || (!count && begin())) return -1;
  hidden[count++] = at;
  return overwrite(at + 1, "\x0b", 1);
}
