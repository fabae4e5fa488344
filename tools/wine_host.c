// Runs a region's library on Windows, for native_wine.py: wine_host.exe REGION.dll CREW.dll DUMP WORKERS RUNS FUNCTION...
// DUMP holds, in 64 bits each: how many tables there are, then of each its index in NativeCall (-1: the constants), its
// size in bytes, and its bytes, rounded up to 8; then NativeCall itself. The tables are written back behind the last run. All
// runs begin with the same tables, and are to leave the same arena. Macros: the members of NativeCall, and WORDS, their
// number.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum { MOST = 16 };

static void *function(HMODULE library, const char *name) { return (void *)GetProcAddress(library, name); }

static HMODULE load(const char *path) {
    HMODULE library = LoadLibraryA(path);
    if (!library) {
        printf("LoadLibrary %s: error %lu\n", path, GetLastError());
        exit(2);
    }
    return library;
}

int main(int count, char **args) {
    if (count < 6) return 2;
    HMODULE region = load(args[1]), crew = load(args[2]);
    const int workers = atoi(args[4]), runs = atoi(args[5]);
    FILE *file = fopen(args[3], "rb");
    int64_t tables, index[MOST], size[MOST];
    uint64_t call[WORDS];
    char *memory[MOST], *before[MOST], *arena = 0, *constants = 0, *first = 0;
    int64_t arena_bytes = 0;
    uint64_t *shifts = 0;
    fread(&tables, 8, 1, file);
    for (int i = 0; i < tables; ++i) {
        fread(&index[i], 8, 1, file);
        fread(&size[i], 8, 1, file);
        memory[i] = _aligned_malloc(size[i] + 64, 64);
        before[i] = malloc(size[i] + 64);
        fread(before[i], 1, (size[i] + 7) / 8 * 8, file);
        if (index[i] == ARENA) arena = memory[i], arena_bytes = size[i];
        if (index[i] == FUNCTIONS)
            for (int j = 6; j < count; ++j) ((uint64_t *)before[i])[j - 6] = (uint64_t)function(region, args[j]);
        if (index[i] == SHIFTS) shifts = (uint64_t *)memory[i];
        if (index[i] < 0) constants = memory[i];
    }
    fread(call, 8, WORDS, file);
    fclose(file);
    for (int i = 0; i < tables; ++i) if (index[i] >= 0) call[index[i]] = (uint64_t)memory[i];
    if (workers > 1) {
        const int hired = ((int (*)(int))function(crew, "hire"))(workers - 1);
        call[DOOR] = (uint64_t)((void *(*)(void))function(crew, "door"))();
        call[TAKE] = (uint64_t)function(crew, "take");
        call[LEAD] = (uint64_t)function(crew, "lead");
        call[ALONG] = (uint64_t)function(region, "work_along");
        if (hired != workers - 1) {
            printf("%d helpers, expected %d\n", hired, workers - 1);
            return 3;
        }
    }
    void (*run)(uint64_t *) = (void (*)(uint64_t *))function(region, "run_region");
    int unlike = 0;
    for (int i = 0; i < runs; ++i) {
        for (int j = 0; j < tables; ++j) memcpy(memory[j], before[j], size[j]);
        shifts[1] = (uint64_t)constants - (uint64_t)arena;
        if (i == runs / 2) Sleep(30);  // helpers fall asleep
        run(call);
        if (!first) memcpy(first = malloc(arena_bytes), arena, arena_bytes);
        unlike += memcmp(first, arena, arena_bytes) != 0;
    }
    file = fopen(args[3], "wb");
    for (int i = 0; i < tables; ++i) fwrite(memory[i], 1, size[i], file);
    fclose(file);
    if (unlike) printf("%d of %d runs left another arena\n", unlike, runs);
    return unlike ? 4 : 0;
}
