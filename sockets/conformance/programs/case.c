// SPDX-License-Identifier: Apache-2.0 OR MIT
// The common part of all case programs: the processes, the transcripts, and the report of upgraded
// connections.
//
// State shared by both sides and their parent is in one memory object: transcripts of killed
// processes survive, and the processes need no descriptor to wait for each other.

#include "case.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define TRANSCRIPT_BYTES (256 << 10)
#define SHARED_DESCRIPTOR 900

struct shared {
    pid_t process;
    struct sockaddr_storage address;
    socklen_t address_length;
    int family;
    // Whether both ends are a `socketpair`, and its descriptors.
    int is_pair, pair[2];
    // Number of processes that have closed the ends they do not use.
    atomic_int parted;
    atomic_int reached[2];
    atomic_int upgraded[2];
    atomic_int reused[2];
    atomic_size_t used[2];
    char transcript[2][TRANSCRIPT_BYTES];
};

static struct shared *shared;
static struct test_case *cases;
static enum side this_side;

void add_case(struct test_case *added) {
    struct test_case **last = &cases;
    while (*last)
        last = &(*last)->next;
    *last = added;
}

void note(const char *format, ...) {
    int saved = errno;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    size_t at = atomic_fetch_add(&shared->used[this_side], length);
    if (at + length <= TRANSCRIPT_BYTES)
        memcpy(shared->transcript[this_side] + at, line, length);
    errno = saved;
}

const char *case_object(void) {
    static char path[40];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", shared->process, SHARED_DESCRIPTOR);
    return path;
}

static void map_shared(int fd) {
    int protection = PROT_READ | PROT_WRITE;
    shared = mmap(NULL, sizeof *shared, protection, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        _exit(97);
}

void join_case(enum side side, const char *object) {
    int fd = open(object, O_RDWR);
    map_shared(fd);
    close(fd);
    this_side = side;
}

void note_result(const char *call, long result) {
    if (result < 0)
        note("%s = %ld %s", call, result, errno ? strerrorname_np(errno) : "");
    else
        note("%s = %ld", call, result);
}

void note_bytes(const char *what, const void *bytes, size_t length) {
    char text[41] = "";
    const char *letters = bytes;
    size_t shown = 0;
    while (length <= 40 && shown < length && letters[shown] >= ' ' && letters[shown] <= '~')
        shown++;
    if (shown == length)
        memcpy(text, letters, length);
    unsigned long long sum = checksum(CHECKSUM_BEGIN, bytes, length);
    note("%s: %zu bytes %016llx %s", what, length, sum, text);
}

void note_poll(const char *what, int fd) {
    struct pollfd asked = {fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP, 0};
    int ready = poll(&asked, 1, 0);
    note("%s: poll gives %d, %s", what, ready, events_text(asked.revents));
}

static int compare_events(const void *one, const void *other) {
    const struct epoll_event *first = one, *second = other;
    return (first->data.u64 > second->data.u64) - (first->data.u64 < second->data.u64);
}

int note_events(const char *what, int epoll, int milliseconds) {
    struct epoll_event events[40];
    int ready = epoll_wait(epoll, events, 40, milliseconds);
    note("%s: %d %s", what, ready, ready < 0 ? strerrorname_np(errno) : "");
    if (ready > 0)
        qsort(events, ready, sizeof *events, compare_events);
    for (int i = 0; i < ready; i++) {
        unsigned long long data = events[i].data.u64;
        note("  %s, data %llx", events_text(events[i].events), data);
    }
    return ready;
}

void require(int condition, const char *what) {
    if (condition)
        return;
    note("FAILED: %s, errno %s", what, strerrorname_np(errno));
    _exit(99);
}

int prove(int fd, enum side side) {
    if (!freeport_is_accelerated || freeport_is_accelerated(fd) != 1)
        return 0;
    atomic_store(&shared->upgraded[side], 1);
    return 1;
}

void has_reused(enum side side) { atomic_store(&shared->reused[side], 1); }

// One byte each way. The client tells whether it is the last, the server whether it is upgraded.
static int round_trip(int fd, enum side side, int last, int *peer_upgraded) {
    char byte;
    if (side == CLIENT) {
        byte = last ? 's' : 'w';
        require(send(fd, &byte, 1, MSG_NOSIGNAL) == 1, "warm-up: send");
        require(recv(fd, &byte, 1, 0) == 1, "warm-up: receive");
        *peer_upgraded = byte == 'a';
        return last;
    }
    require(recv(fd, &byte, 1, 0) == 1, "warm-up: receive");
    char answer = prove(fd, side) ? 'a' : 'p';
    require(send(fd, &answer, 1, MSG_NOSIGNAL) == 1, "warm-up: send");
    return byte == 's';
}

// Time that the parent waits for its sides.
static int patience_ms(void) {
    const char *seconds = getenv("CONFORMANCE_SECONDS");
    return 1000 * (seconds ? atoi(seconds) : 10);
}

// Returns whether both sides are accelerated.
static int will_be_upgraded(void) { return getenv("CONFORMANCE_PRELOADED") != NULL; }

int is_as_upgraded_as_it_will_be(int fd, enum side side) {
    if (!will_be_upgraded())
        return 1;
    return prove(fd, side) && atomic_load(&shared->upgraded[1 - side]);
}

static void dialogue(int fd, enum side side, int rounds) {
    const char *mixed = getenv("CONFORMANCE_ACCELERATED_SIDE");
    int preloaded = will_be_upgraded();
    int64_t deadline = now_ms() + patience_ms() / 3;
    int done = 0, ours = 0, theirs = 0;
    for (int round = 0; !done; round++) {
        int last = round >= rounds && (!preloaded || (ours && theirs));
        done = round_trip(fd, side, last || now_ms() > deadline, &theirs);
        ours = prove(fd, side);
        if (side == CLIENT && (preloaded || mixed))
            sleep_ms(1);
    }
}

void warm_up(int fd, enum side side) {
    int flags = fcntl(fd, F_GETFL);
    set_blocking(fd, 1);
    dialogue(fd, side, 20);
    if (flags & O_NONBLOCK)
        set_blocking(fd, 0);
}

void prove_soon(int fd, enum side side) { dialogue(fd, side, 0); }

void upgrade_again(int fd, enum side side) {
    dialogue(fd, side, 0);
    if (will_be_upgraded() && !prove(fd, side))
        note("not upgraded again");
}

void check_returned(int fd) {
    if (freeport_is_accelerated && freeport_is_accelerated(fd) == 1)
        note("still upgraded");
}

void check_upgraded(int fd) {
    if (will_be_upgraded() && freeport_is_accelerated(fd) != 1)
        note("not upgraded any more");
}

void reach(enum side side, int point) { atomic_store(&shared->reached[side], point); }

void await_peer(enum side side, int point) {
    while (atomic_load(&shared->reached[1 - side]) < point)
        sleep_ms(1);
}

void meet(enum side side, int point) {
    reach(side, point);
    await_peer(side, point);
}

void await_events(int fd, short events) {
    int64_t deadline = now_ms() + PATIENCE_MS;
    struct pollfd asked = {fd, events, 0};
    while (now_ms() < deadline) {
        if (poll(&asked, 1, 100) > 0 && (asked.revents & events) == events)
            return;
        if (asked.revents)
            sleep_ms(1);
    }
    note("LATE: waited for %s", events_text(events));
}

void await_bytes(int fd, int bytes) {
    int64_t deadline = now_ms() + PATIENCE_MS;
    int there = 0;
    while (now_ms() < deadline) {
        if (ioctl(fd, FIONREAD, &there) == 0 && there >= bytes)
            return;
        sleep_ms(1);
    }
    note("LATE: waited for %d bytes, there are %d", bytes, there);
}

const struct sockaddr *address(socklen_t *length) {
    *length = shared->address_length;
    return (const struct sockaddr *)&shared->address;
}

int family(void) { return shared->family; }

int is_pair(void) { return shared->is_pair; }

int connect_there(void) {
    socklen_t length;
    const struct sockaddr *there = address(&length);
    int fd = socket(family(), SOCK_STREAM, 0);
    require(fd >= 0 && connect(fd, there, length) == 0, "connect");
    return fd;
}

int listen_here(struct sockaddr_storage *where, socklen_t *length) {
    struct sockaddr_storage here = {.ss_family = family()};
    socklen_t bytes = sizeof(struct sockaddr_in);
    if (family() == AF_UNIX) {
        // The kernel chooses a name.
        bytes = sizeof here.ss_family;
    } else if (family() == AF_INET6) {
        ((struct sockaddr_in6 *)&here)->sin6_addr = in6addr_loopback;
        bytes = sizeof(struct sockaddr_in6);
    } else {
        ((struct sockaddr_in *)&here)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    int fd = socket(family(), SOCK_STREAM, 0);
    require(fd >= 0 && bind(fd, (struct sockaddr *)&here, bytes) == 0, "bind");
    require(listen(fd, 16) == 0, "listen");
    bytes = sizeof here;
    require(getsockname(fd, (struct sockaddr *)&here, &bytes) == 0, "getsockname");
    if (where)
        *where = here;
    if (length)
        *length = bytes;
    return fd;
}

size_t send_all(int fd, const void *bytes, size_t length) {
    size_t done = 0;
    while (done < length) {
        ssize_t sent = send(fd, (const char *)bytes + done, length - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){fd, POLLOUT, 0}, 1, 1000);
            continue;
        }
        if (sent <= 0)
            break;
        done += sent;
    }
    return done;
}

size_t receive_all(int fd, void *bytes, size_t length) {
    size_t done = 0;
    while (done < length) {
        ssize_t got = recv(fd, (char *)bytes + done, length - done, 0);
        if (got < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){fd, POLLIN, 0}, 1, 1000);
            continue;
        }
        if (got <= 0)
            break;
        done += got;
    }
    return done;
}

size_t fill_up(int fd) {
    static char block[64 << 10];
    size_t total = 0;
    // The kernel accepts more after the bytes in flight have arrived.
    for (int quiet = 0; quiet < 8;) {
        ssize_t sent = send(fd, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            break;
        quiet = sent < 0 ? quiet + 1 : 0;
        total += sent < 0 ? 0 : sent;
        if (sent < 0)
            sleep_ms(2);
    }
    return total;
}

size_t drain(int fd) {
    static char block[64 << 10];
    size_t total = 0;
    for (int quiet = 0; quiet < 5;) {
        ssize_t got = recv(fd, block, sizeof block, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            break;
        quiet = got < 0 ? quiet + 1 : 0;
        total += got < 0 ? 0 : got;
        if (got < 0)
            sleep_ms(2);
    }
    return total;
}

void set_blocking(int fd, int blocking) {
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

void note_status(const char *what, int status) {
    if (WIFEXITED(status))
        note("%s: exit %d", what, WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        note("%s: SIG%s", what, sigabbrev_np(WTERMSIG(status)));
    else
        note("%s: status %#x", what, status);
}

static const char *side_name(enum side side) { return side == SERVER ? "server" : "client"; }

// Returns a side's end of the connection of the case.
static int end_of(const struct test_case *chosen, enum side side, int listening) {
    if (chosen->flags & BARE)
        return side == SERVER ? listening : -1;
    if (shared->is_pair) {
        close(shared->pair[1 - side]);
        atomic_fetch_add(&shared->parted, 1);
        while (atomic_load(&shared->parted) < 3)
            sleep_ms(1);
        return shared->pair[side];
    }
    return side == SERVER ? accept(listening, NULL, NULL) : connect_there();
}

// Runs a side: gets its end of a connection, and runs the case.
static void run_side(const struct test_case *chosen, enum side side, int listening) {
    this_side = side;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setvbuf(stdout, NULL, _IONBF, 0);
    int fd = end_of(chosen, side, listening);
    require(fd >= 0 || chosen->flags & BARE, "a connection");
    if (side == CLIENT || !(chosen->flags & BARE))
        close(listening);
    if (chosen->flags & WARM && !(chosen->flags & BARE))
        warm_up(fd, side);
    chosen->run(side, fd);
    _exit(0);
}

// Forks a side. If only this one is to be accelerated, it executes itself anew with the library.
static pid_t start_side(const struct test_case *chosen, enum side side, int listening) {
    pid_t child = fork();
    if (child != 0)
        return child;
    const char *accelerated = getenv("CONFORMANCE_ACCELERATED_SIDE");
    if (accelerated && strcmp(accelerated, side_name(side)) == 0) {
        char number[12];
        snprintf(number, sizeof number, "%d", listening);
        setenv("LD_PRELOAD", getenv("CONFORMANCE_LIBRARY"), 1);
        execl("/proc/self/exe", "case", "--side", side_name(side), chosen->name, number, NULL);
        _exit(98);
    }
    close(SHARED_DESCRIPTOR);
    run_side(chosen, side, listening);
    return 0;
}

static void print_side(enum side side, int status, int ended) {
    printf("-- %s\n%.*s", side_name(side), TRANSCRIPT_BYTES, shared->transcript[side]);
    if (!ended)
        printf("did not end in time\n");
    else if (WIFSIGNALED(status))
        printf("ended by SIG%s\n", sigabbrev_np(WTERMSIG(status)));
    else
        printf("ended with %d\n", WEXITSTATUS(status));
}

// Runs a case, and prints both transcripts.
static int run_case(const struct test_case *chosen, const char *over) {
    int object = memfd_create("case", 0);
    if (object < 0 || ftruncate(object, sizeof *shared) || dup2(object, SHARED_DESCRIPTOR) < 0)
        return 97;
    close(object);
    map_shared(SHARED_DESCRIPTOR);
    shared->process = getpid();
    shared->is_pair = strcmp(over, "pair") == 0;
    int is_unix = shared->is_pair || strcmp(over, "unix") == 0;
    shared->family = is_unix ? AF_UNIX : strcmp(over, "v6") == 0 ? AF_INET6 : AF_INET;
    int listening = listen_here(&shared->address, &shared->address_length);
    if (shared->is_pair && socketpair(AF_UNIX, SOCK_STREAM, 0, shared->pair) < 0)
        return 97;
    pid_t sides[2] = {start_side(chosen, SERVER, listening), start_side(chosen, CLIENT, listening)};
    close(listening);
    for (int i = 0; shared->is_pair && i < 2; i++)
        close(shared->pair[i]);
    atomic_fetch_add(&shared->parted, 1);
    int64_t deadline = now_ms() + patience_ms();
    int status[2] = {0, 0}, ended[2] = {0, 0};
    while (!(ended[0] && ended[1]) && now_ms() < deadline) {
        for (int i = 0; i < 2; i++)
            ended[i] = ended[i] || waitpid(sides[i], &status[i], WNOHANG) == sides[i];
        sleep_ms(1);
    }
    for (int i = 0; i < 2; i++) {
        if (!ended[i])
            kill(sides[i], SIGKILL);
    }
    print_side(SERVER, status[SERVER], ended[SERVER]);
    print_side(CLIENT, status[CLIENT], ended[CLIENT]);
    fprintf(stderr, "upgraded %d %d\n", shared->upgraded[SERVER], shared->upgraded[CLIENT]);
    fprintf(stderr, "reused %d %d\n", shared->reused[SERVER], shared->reused[CLIENT]);
    return 0;
}

static const struct test_case *find(const char *name, size_t length) {
    for (struct test_case *each = cases; each; each = each->next) {
        if (strlen(each->name) == length && strncmp(each->name, name, length) == 0)
            return each;
    }
    fprintf(stderr, "no case %s\n", name);
    exit(96);
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--list") == 0) {
        for (struct test_case *each = cases; each; each = each->next)
            printf("%s %u\n", each->name, each->flags);
        return 0;
    }
    if (count == 5 && strcmp(arguments[1], "--side") == 0) {
        map_shared(SHARED_DESCRIPTOR);
        close(SHARED_DESCRIPTOR);
        enum side side = strcmp(arguments[2], "server") == 0 ? SERVER : CLIENT;
        run_side(find(arguments[3], strlen(arguments[3])), side, atoi(arguments[4]));
    }
    if (count >= 6 && strcmp(arguments[1], "--program") == 0)
        run_program(arguments);
    if (count != 2) {
        fprintf(stderr, "give a case, or --list\n");
        return 96;
    }
    close_range(3, ~0U, 0);
    const char *mark = strchr(arguments[1], '@');
    size_t length = mark ? (size_t)(mark - arguments[1]) : strlen(arguments[1]);
    return run_case(find(arguments[1], length), mark ? mark + 1 : "");
}
