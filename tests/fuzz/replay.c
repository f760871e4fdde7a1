/* Runs a fuzz target over the files of a directory, where there is no libFuzzer:
 * replay DIRECTORY.  What a fuzzer once found stays found. */
#include "base/must.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of exactly its size, for the address sanitizer. */
static void run_file(const char *path)
{
    FILE *stream = fopen(path, "rb");
    uint8_t *data;
    long size;

    must(stream);
    must(fseek(stream, 0, SEEK_END) == 0);
    size = ftell(stream);
    must(size >= 0 && fseek(stream, 0, SEEK_SET) == 0);
    data = malloc(size ? (size_t)size : 1);
    must(data);
    must(fread(data, 1, (size_t)size, stream) == (size_t)size);
    (void)fclose(stream);
    (void)LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

int main(int argc, char **argv)
{
    char path[4096];
    struct dirent *entry;
    int files = 0;
    DIR *directory;

    must(argc == 2);
    directory = opendir(argv[1]);
    must(directory);
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
        run_file(path);
        files++;
    }
    (void)closedir(directory);
    printf("%d files\n", files);
    return files > 0 ? 0 : 1;
}
