// Answers the instruction cpuid for a library as a processor of the level x86-64-v3 would: without AVX-512, and without
// other vector instructions that came after AVX2. Each cpuid becomes ud2, of the same two bytes, and a handler of SIGILL
// answers in its place.
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { FEATURES = 7 };  // the leaf that tells of vector instructions
static const uint32_t EBX = 1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31;
static const uint32_t ECX = 1u << 1 | 1u << 6 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 11 | 1u << 12 | 1u << 14;
static const uint32_t EDX = 1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25;
static struct sigaction before;

static void answer(int signal, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const uint8_t *at = (const uint8_t *)registers[REG_RIP];
  if (at[0] != 0x0f || at[1] != 0x0b) {
    sigaction(signal, &before, 0);  // not ours: the instruction is tried again, and ends as it would have
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

// Replaces the cpuid at an address; returns 0, or -1 where none is there or its page cannot be written.
int hide(uint8_t *at) {
  static int ready;
  if (!ready) {
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
    if (sigaction(SIGILL, &action, &before)) return -1;
    ready = 1;
  }
  uint8_t *page = (uint8_t *)((uintptr_t)at & ~(uintptr_t)4095);
  if (at[0] != 0x0f || at[1] != 0xa2) return -1;
  if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC)) return -1;
  at[1] = 0x0b;
  return mprotect(page, 8192, PROT_READ | PROT_EXEC);
}
