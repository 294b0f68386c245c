/* What the test in the virtual machine needs besides a shell: memory in several ways, and cgroups. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MIB (1 << 20)

static char full[MIB];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void had_it_all(void)
{
	puts("had it all");
	fflush(stdout);
	sleep(1000);
}

/* Memory of a process's own. */
static void take_own(int mib)
{
	while (mib-- > 0) {
		char *part = malloc(MIB);
		if (!part)
			fail("malloc");
		memset(part, 'x', MIB);
	}
}

/* Files without a name, which nobody maps. */
static void take_files(int mib)
{
	int file = memfd_create("taken", 0);
	while (mib-- > 0)
		if (write(file, full, MIB) != MIB)
			fail("write");
}

static void hand_over(const char *cgroup, uid_t uid)
{
	const char *names[] = { "", "/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads" };
	char path[4096];
	if (setxattr(cgroup, "user.delegate", "1", 1, 0))
		fail(cgroup);
	for (int n = 0; n < 4; n++) {
		snprintf(path, sizeof path, "%s%s", cgroup, names[n]);
		if (chown(path, uid, uid))
			fail(path);
	}
}

/* Runs a program in a cgroup as a user, which is what a manager of services does. */
static void run_in(const char *cgroup, uid_t uid, char **program)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
	int door = open(path, O_WRONLY);
	if (door < 0 || write(door, "0", 1) != 1)
		fail(path);
	close(door);
	if (setgroups(0, NULL) || setgid(uid) || setuid(uid))
		fail("setuid");
	execvp(program[0], program);
	fail(program[0]);
}

int main(int count, char **words)
{
	const char *what = count > 2 ? words[1] : "";
	memset(full, 'x', MIB);
	if (!strcmp(what, "own")) {
		take_own(atoi(words[2]));
		had_it_all();
	} else if (!strcmp(what, "memfd")) {
		take_files(atoi(words[2]));
		had_it_all();
	} else if (!strcmp(what, "many") && count > 3) {
		for (int n = atoi(words[2]); n > 0; n--)
			if (fork() == 0) {
				take_own(atoi(words[3]));
				sleep(1000);
			}
		sleep(1000);
	} else if (!strcmp(what, "delegate") && count > 3) {
		hand_over(words[2], (uid_t)atoi(words[3]));
	} else if (!strcmp(what, "run") && count > 4) {
		run_in(words[2], (uid_t)atoi(words[3]), words + 4);
	} else {
		return 2;
	}
	return 0;
}
