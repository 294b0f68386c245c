/* Tries one thing a command must not do. Says "ok" if the kernel let it, else the name of the error. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <linux/vm_sockets.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int said(long result) {
    puts(result < 0 ? strerrorname_np(errno) : "ok");
    return result < 0;
}

static int unix_socket(const char *name, int abstract) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0) return said(-1);
    strncpy(address.sun_path + abstract, name, sizeof address.sun_path - 2);
    return said(connect(fd, (void *)&address, offsetof(struct sockaddr_un, sun_path) + abstract + strlen(name)));
}

static int read_memory(pid_t pid) {
    char path[64], byte;
    unsigned long address = 0x1000;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    if (maps && fscanf(maps, "%lx", &address) != 1) address = 0x1000;
    struct iovec here = {&byte, 1}, there = {(void *)address, 1};
    return said(process_vm_readv(pid, &here, 1, &there, 1, 0));
}

static int namespace_by_clone3(void) {
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid(pid, NULL, 0);
    return said(pid);
}

static int namespace_by_clone(void) {
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid(pid, NULL, 0);
    return said(pid);
}

#ifdef __x86_64__
static int old_call(void) {
    long result;
    /* getpid by the 32-bit door */
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
    return said(result > 0 ? 0 : -1);
}
#else
static int old_call(void) { raise(SIGSYS); return 1; }
#endif

/* One way to make `name` run as its owner or group. */
static int set_id(const char *way, const char *name, mode_t bits) {
    unlink(name);
    rmdir(name);
    int creates = O_CREAT | O_RDWR;
    if (!strcmp(way, "open")) return said(syscall(SYS_openat, AT_FDCWD, name, creates, 0755 | bits));
#ifdef __x86_64__
    if (!strcmp(way, "old-open")) return said(syscall(SYS_open, name, creates, 0755 | bits));
    if (!strcmp(way, "creat")) return said(syscall(SYS_creat, name, 0755 | bits));
    if (!strcmp(way, "old-mkdir")) return said(syscall(SYS_mkdir, name, 0755 | bits));
    if (!strcmp(way, "old-mknod")) return said(syscall(SYS_mknod, name, S_IFREG | 0755 | bits, 0));
#endif
    if (!strcmp(way, "high")) return said(syscall(SYS_openat, AT_FDCWD, name, creates, (1ul << 32) | 0755 | bits));
    if (!strcmp(way, "tmpfile")) return said(syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0755 | bits));
    if (!strcmp(way, "mkdir")) return said(mkdirat(AT_FDCWD, name, 0755 | bits));
    if (!strcmp(way, "mknod")) return said(mknodat(AT_FDCWD, name, S_IFREG | 0755 | bits, 0));
    if (!strcmp(way, "openat2")) {
        struct { uint64_t flags, mode, resolve; } how = {creates, 0755 | bits, 0};
        return said(syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof how));
    }
    int fd = open(name, creates, 0755);
#ifdef __x86_64__
    if (!strcmp(way, "old-chmod")) return said(syscall(SYS_chmod, name, 0755 | bits));
#endif
    if (!strcmp(way, "chmod")) return said(syscall(SYS_fchmodat, AT_FDCWD, name, 0755 | bits));
    if (!strcmp(way, "fchmod")) return said(fchmod(fd, 0755 | bits));
    if (!strcmp(way, "fchmodat2")) return said(syscall(452, AT_FDCWD, name, 0755 | bits, 0));
    fprintf(stderr, "no way `%s`\n", way);
    return 2;
}

/* As vim: at the end of its input it takes its error stream for a terminal. */
static int wait_for_terminal(int milliseconds) {
    char byte;
    fd_set set;
    struct timeval end = {milliseconds / 1000, milliseconds % 1000 * 1000};
    if (open("/dev/tty", O_RDWR) >= 0) return said(0);
    if (read(0, &byte, 1) != 0) return said(0);
    dup2(2, 0);
    FD_ZERO(&set);
    FD_SET(0, &set);
    select(1, &set, NULL, NULL, milliseconds < 0 ? NULL : &end);
    return said(0);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "0";
    struct { const char *name; int family, type, protocol; } sockets[] = {
        {"tcp", AF_INET, SOCK_STREAM, 0},     {"tcp6", AF_INET6, SOCK_STREAM, 0}, {"udp", AF_INET, SOCK_DGRAM, 0},
        {"mptcp", AF_INET, SOCK_STREAM, 262}, {"unix", AF_UNIX, SOCK_STREAM, 0},  {"netlink", AF_NETLINK, SOCK_RAW, 0},
        {"vsock", AF_VSOCK, SOCK_STREAM, 0},  {"packet", AF_PACKET, SOCK_RAW, 0}, {"alg", AF_ALG, SOCK_SEQPACKET, 0},
    };
    char params[120] = {0}, attr[128] = {0};
    for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++)
        if (!strcmp(what, sockets[i].name)) return said(socket(sockets[i].family, sockets[i].type, sockets[i].protocol));
    if (!strcmp(what, "socketpair")) { int pair[2]; return said(socketpair(AF_UNIX, SOCK_STREAM, 0, pair)); }
    if (!strcmp(what, "unix-path")) return unix_socket(arg, 0);
    if (!strcmp(what, "unix-abstract")) return unix_socket(arg, 1);
    if (!strcmp(what, "ptrace")) return said(ptrace(PTRACE_SEIZE, atoi(arg), 0, 0));
    if (!strcmp(what, "vm-readv")) return read_memory(atoi(arg));
    if (!strcmp(what, "kill")) return said(kill(atoi(arg), SIGKILL));
    if (!strcmp(what, "pidfd-kill")) {
        int fd = syscall(SYS_pidfd_open, atoi(arg), 0);
        return said(fd < 0 ? fd : syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
    }
    if (!strcmp(what, "mem")) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/mem", atoi(arg));
        return said(open(path, O_RDWR));
    }
    if (!strcmp(what, "io-uring")) return said(syscall(SYS_io_uring_setup, 1, params));
    if (!strcmp(what, "keyctl")) return said(syscall(SYS_keyctl, 0, -4, 0, 0, 0));
    if (!strcmp(what, "add-key")) return said(syscall(SYS_add_key, "user", "toolhost-test", "x", 1, -2));
    if (!strcmp(what, "unshare-user")) return said(unshare(CLONE_NEWUSER));
    if (!strcmp(what, "unshare-net")) return said(unshare(CLONE_NEWNET));
    if (!strcmp(what, "clone3")) return namespace_by_clone3();
    if (!strcmp(what, "clone")) return namespace_by_clone();
    if (!strcmp(what, "int80")) return old_call();
    if (!strcmp(what, "setns")) return said(setns(open("/proc/self/ns/mnt", O_RDONLY), 0));
    if (!strcmp(what, "chroot")) return said(chroot("."));
    if (!strcmp(what, "remount")) return said(mount("none", "/", NULL, MS_REMOUNT | MS_BIND, NULL));
    if (!strcmp(what, "mount")) return said(mount("none", arg, "tmpfs", 0, NULL));
    if (!strcmp(what, "open-tree")) return said(syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* clone */));
    if (!strcmp(what, "by-handle")) return said(syscall(SYS_open_by_handle_at, AT_FDCWD, params, O_RDONLY));
    if (!strcmp(what, "bpf")) return said(syscall(SYS_bpf, 0, attr, 0));
    if (!strcmp(what, "perf")) return said(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0));
    if (!strcmp(what, "userfaultfd")) return said(syscall(SYS_userfaultfd, 1 /* user mode only */));
    if (!strcmp(what, "tiocsti")) return said(ioctl(0, TIOCSTI, "x"));
    if (!strcmp(what, "tiocsti-high")) return said(syscall(SYS_ioctl, 0, (1ul << 32) | TIOCSTI, "x"));
    if (!strcmp(what, "mknod")) return said(mknod(arg, S_IFCHR | 0666, makedev(1, 5)));
    if (!strcmp(what, "mkfifo")) return said(mkfifo(arg, 0600));
    if (!strcmp(what, "set-id") && argc > 4) return set_id(arg, argv[3], strtol(argv[4], NULL, 8));
    if (!strcmp(what, "setuid")) return said(setuid(0));
    if (!strcmp(what, "init-module")) return said(syscall(SYS_init_module, params, 0, ""));
    if (!strcmp(what, "kexec")) return said(syscall(SYS_kexec_load, 0, -1, NULL, 0));
    if (!strcmp(what, "wait-for-terminal")) return wait_for_terminal(argc > 2 ? atoi(arg) : -1);
    fprintf(stderr, "no probe `%s`\n", what);
    return 2;
}
