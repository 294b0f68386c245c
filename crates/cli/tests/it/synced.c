/* Loaded before the C library: notes each file that the program waits for the disk with, in the file $SYNCED. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void note(int file)
{
    char link[64], path[4096];
    const char *log = getenv("SYNCED");
    int out = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (out < 0)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0) {
        path[length++] = '\n';
        if (write(out, path, length) < 0)
            abort();
    }
    close(out);
}

int fsync(int file)
{
    note(file);
    return syscall(SYS_fsync, file);
}

int fdatasync(int file)
{
    note(file);
    return syscall(SYS_fdatasync, file);
}
