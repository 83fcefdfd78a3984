// SPDX-License-Identifier: Apache-2.0 OR MIT
// A thread loads a library with a slow constructor, and so holds the lock of the loader. A child of
// `vfork`, or of `fork` if that is the argument, concurrently executes another program: it must not
// wait for that lock.
// With -DSLOW, this file is the library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef SLOW

__attribute__((constructor)) static void begin(void) {
    char word = 1;
    if (write(atoi(getenv("BEGUN")), &word, 1) != 1 || read(atoi(getenv("GO")), &word, 1) != 1)
        abort();
}

#else

static void *load(void *path) {
    return dlopen(path, RTLD_NOW);
}

static int status_of(pid_t child) {
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static int guest(int is_fork) {
    pid_t child = is_fork ? fork() : vfork();
    if (child == 0) {
        int copy = fcntl(STDOUT_FILENO, F_DUPFD, 100);
        dup2(copy, 101);
        dup3(copy, 102, O_CLOEXEC);
        close(copy);
        close_range(100, 110, 0);
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    return status_of(child);
}

// Before the program has had a child by it, nobody has to be ready for one.
static int first_guest(void) {
    pid_t child = vfork();
    if (child == 0)
        _exit(0);
    return status_of(child);
}

static int say(const char *name, int descriptor) {
    char number[16];
    snprintf(number, sizeof number, "%d", descriptor);
    return setenv(name, number, 1);
}

int main(int count, char **arguments) {
    (void)arguments;
    int begun[2], go[2];
    char word = 0;
    pthread_t loader;
    void *library = NULL;
    if (count == 1 && first_guest())
        return 1;
    if (pipe(begun) || pipe(go) || say("BEGUN", begun[1]) || say("GO", go[0]))
        return 2;
    if (pthread_create(&loader, NULL, load, "./slow.so") || read(begun[0], &word, 1) != 1)
        return 3;
    int status = guest(count > 1);
    if (write(go[1], &word, 1) != 1 || pthread_join(loader, &library) || library == NULL)
        return 4;
    return status != 0;
}

#endif
