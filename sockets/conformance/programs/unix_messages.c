// SPDX-License-Identifier: Apache-2.0 OR MIT
// Ancillary data over Unix sockets: descriptors, and credentials of the sender.

#include "case.h"

static char in[100000], out[100000];

union control {
    struct cmsghdr first;
    char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(10 * sizeof(int))];
};

// Sends bytes and one header of control data.
static long send_with(int fd, const char *bytes, int type, const void *data, size_t length) {
    union control control = {0};
    struct iovec part = {(char *)bytes, strlen(bytes)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(length)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){CMSG_LEN(length), SOL_SOCKET, type};
    memcpy(CMSG_DATA(header), data, length);
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

// Sends bytes and the reading end of a new pipe into which it has written these letters. Returns
// the writing end.
static int send_pipe(int fd, const char *bytes, const char *letters) {
    int ends[2];
    require(pipe(ends) == 0, "pipe");
    require(write(ends[1], letters, strlen(letters)) > 0, "write");
    note("with a descriptor: %ld", send_with(fd, bytes, SCM_RIGHTS, &ends[0], sizeof(int)));
    close(ends[0]);
    return ends[1];
}

static pid_t peer;

static void note_header(const struct cmsghdr *header) {
    size_t length = header->cmsg_len - CMSG_LEN(0);
    note("  control: level %d, type %d, %zu bytes", header->cmsg_level, header->cmsg_type, length);
    if (header->cmsg_type == SCM_CREDENTIALS) {
        struct ucred who;
        memcpy(&who, CMSG_DATA(header), sizeof who);
        note("  from the peer: %d %d %d", who.pid == peer, who.uid == getuid(),
             who.gid == getgid());
    }
    if (header->cmsg_type != SCM_RIGHTS)
        return;
    for (size_t i = 0; i < length / sizeof(int); i++) {
        int descriptor;
        char letters[20] = "";
        memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        ssize_t got = read(descriptor, letters, 4);
        note("  a descriptor: %.*s, flags %d", (int)got, letters, fcntl(descriptor, F_GETFD));
        close(descriptor);
    }
}

// Receives a message, and notes its parts.
static long receive_with(int fd, size_t bytes, size_t room, int flags) {
    union control control = {0};
    struct iovec part = {in, bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = room};
    long got = recvmsg(fd, &message, flags);
    note("message: %ld %s, flags %#x", got, got < 0 ? strerrorname_np(errno) : "",
         got < 0 ? 0 : message.msg_flags);
    if (got > 0)
        note_bytes("  bytes", in, got);
    for (struct cmsghdr *each = got < 0 ? NULL : CMSG_FIRSTHDR(&message); each;
         each = CMSG_NXTHDR(&message, each))
        note_header(each);
    return got;
}

#define ROOM sizeof(union control)

// Receives `bytes` bytes, however the kernel splits them into messages.
static void receive_all_with(int fd, size_t bytes, int flags) {
    for (size_t done = 0; done < bytes;) {
        union control control = {0};
        struct iovec part = {in + done, bytes - done};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                                 .msg_controllen = ROOM};
        ssize_t got = recvmsg(fd, &message, flags);
        require(got > 0, "recvmsg");
        done += got;
        for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each;
             each = CMSG_NXTHDR(&message, each)) {
            note("with what is before byte %zu:", done);
            note_header(each);
        }
    }
    note_bytes("received", in, bytes);
}

static void exchange_numbers(int fd) {
    pid_t own = getpid();
    require(send(fd, &own, sizeof own, 0) == sizeof own, "send");
    require(recv(fd, &peer, sizeof peer, MSG_WAITALL) == sizeof peer, "receive");
}

static void descriptor_in_the_middle(int fd, enum side side, int point) {
    if (side == CLIENT) {
        TRY(send(fd, "before ", 7, 0));
        int end = send_pipe(fd, "with ", "pipe");
        TRY(send(fd, "after", 5, 0));
        close(end);
        meet(side, point + 1);
        TRY(send(fd, "much later", 10, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
    } else {
        await_peer(side, point + 1);
        receive_all_with(fd, 17, 0);
        receive_with(fd, sizeof in, ROOM, MSG_DONTWAIT);
        reach(side, point + 1);
        receive_with(fd, 10, ROOM, MSG_WAITALL);
        TRY(send(fd, "answer", 6, 0));
    }
    meet(side, point + 2);
}

CASE(a_descriptor_in_the_middle, WARM | UNIX | MIXED) { descriptor_in_the_middle(fd, side, 0); }

CASE(a_descriptor_at_the_beginning, UNIX | MIXED) {
    descriptor_in_the_middle(fd, side, 0);
    warm_up(fd, side);
    descriptor_in_the_middle(fd, side, 2);
}

CASE(descriptors_both_ways_by_turns, WARM | UNIX | RACE) {
    for (int i = 0; i < 20; i++) {
        if (side == (i & 1 ? SERVER : CLIENT)) {
            close(send_pipe(fd, "turn", "pipe"));
            TRY(send(fd, " and bytes", 10, 0));
        } else {
            receive_with(fd, 4, ROOM, MSG_WAITALL);
            TRY(recv(fd, in, 10, MSG_WAITALL));
        }
    }
    meet(side, 1);
}

CASE(a_descriptor_behind_much_data, WARM | UNIX | RACE | MIXED) {
    fill(out, sizeof out, 1);
    if (side == CLIENT) {
        TRY(send_all(fd, out, sizeof out));
        close(send_pipe(fd, "with", "pipe"));
        TRY(send_all(fd, out, sizeof out));
    } else {
        for (int i = 0; i < 2; i++) {
            TRY(receive_all(fd, in, sizeof in));
            note("as sent: %d", memcmp(in, out, sizeof in) == 0);
            if (i == 0)
                receive_with(fd, 4, ROOM, MSG_WAITALL);
        }
    }
    meet(side, 1);
}

CASE(a_descriptor_that_nobody_takes, WARM | UNIX) {
    if (side == CLIENT) {
        int end = send_pipe(fd, "thrown away", "pipe");
        meet(side, 1);
        // There is no peer any more.
        struct pollfd asked = {end, POLLOUT, 0};
        TRY(poll(&asked, 1, PATIENCE_MS));
        note("%s", events_text(asked.revents));
        TRY(send(fd, "on", 2, 0));
    } else {
        TRY(recv(fd, in, 11, MSG_WAITALL));
        note_bytes("received", in, 11);
        meet(side, 1);
        TRY(recv(fd, in, 2, MSG_WAITALL));
    }
    meet(side, 2);
}

CASE(several_descriptors_and_too_little_room, WARM | UNIX) {
    if (side == CLIENT) {
        int ends[10], all[5];
        for (int i = 0; i < 5; i++) {
            require(pipe(ends + 2 * i) == 0 && write(ends[2 * i + 1], "0123456789ab" + i, 8) == 8,
                    "pipe");
            all[i] = ends[2 * i];
        }
        TRY(send_with(fd, "all", SCM_RIGHTS, all, sizeof all));
        TRY(send_with(fd, "two", SCM_RIGHTS, all, sizeof all));
        TRY(send_with(fd, "none", SCM_RIGHTS, all, sizeof all));
    } else {
        receive_with(fd, 3, ROOM, MSG_WAITALL | MSG_CMSG_CLOEXEC);
        receive_with(fd, 3, CMSG_SPACE(2 * sizeof(int)), MSG_WAITALL);
        receive_with(fd, 4, 0, MSG_WAITALL);
    }
    meet(side, 1);
}

CASE(a_descriptor_that_is_looked_at, WARM | UNIX) {
    if (side == CLIENT) {
        close(send_pipe(fd, "twice", "pipepipe"));
    } else {
        await_bytes(fd, 5);
        receive_with(fd, 5, ROOM, MSG_PEEK);
        receive_with(fd, 5, ROOM, 0);
    }
    meet(side, 1);
}

CASE(waiting_for_all_ends_at_a_descriptor, WARM | UNIX | MIXED) {
    if (side == CLIENT) {
        TRY(send(fd, "01234", 5, 0));
        close(send_pipe(fd, "56789", "pipe"));
        TRY(send(fd, "abcde", 5, 0));
    } else {
        receive_all_with(fd, 15, MSG_WAITALL);
    }
    meet(side, 1);
}

CASE(control_data_that_is_wrong, WARM | UNIX) {
    if (side == CLIENT) {
        int closed = 870;
        TRY(send_with(fd, "closed", SCM_RIGHTS, &closed, sizeof closed));
        TRY(send_with(fd, "unknown", 99, &closed, sizeof closed));
        struct ucred other = {1, 0, 0};
        other.pid = getppid();
        long sent = send_with(fd, "", SCM_CREDENTIALS, &other, sizeof other);
        note("as somebody else, without bytes: %d", sent == 0 || errno == EPERM);
        TRY(send_with(fd, "", SCM_RIGHTS, &fd, sizeof fd));
        TRY(send(fd, "end", 3, 0));
    } else {
        receive_with(fd, 100, ROOM, 0);
    }
    meet(side, 1);
}

CASE(messages_with_and_without_control_data_at_once, WARM | UNIX) {
    if (side == SERVER) {
        meet(side, 1);
        receive_all_with(fd, 9, 0);
        return;
    }
    int ends[2];
    require(pipe(ends) == 0 && write(ends[1], "pipe", 4) == 4, "pipe");
    union control control = {.first = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.first), &ends[0], sizeof(int));
    struct iovec parts[3] = {{"one", 3}, {"two", 3}, {"six", 3}};
    struct mmsghdr messages[3] = {{{.msg_iov = parts, .msg_iovlen = 1}, 0},
                                  {{.msg_iov = parts + 1, .msg_iovlen = 1}, 0},
                                  {{.msg_iov = parts + 2, .msg_iovlen = 1}, 0}};
    messages[1].msg_hdr.msg_control = &control;
    messages[1].msg_hdr.msg_controllen = CMSG_SPACE(sizeof(int));
    TRY(sendmmsg(fd, messages, 3, 0));
    note("lengths %u %u %u", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len);
    meet(side, 1);
}

static void credentials_with_every_message(int fd, enum side side) {
    int on = 1, value = -1;
    socklen_t length = sizeof value;
    if (side == SERVER) {
        TRY(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
        TRY(getsockopt(fd, SOL_SOCKET, SO_PASSCRED, &value, &length));
        note("set: %d", value);
    }
    meet(side, 1);
    if (side == CLIENT) {
        TRY(send(fd, "one ", 4, 0));
        TRY(send(fd, "two", 3, 0));
        meet(side, 2);
        pid_t child = fork();
        if (child == 0)
            _exit(send(fd, "child", 5, 0) != 5);
        int status = 0;
        waitpid(child, &status, 0);
        note_status("child", status);
        TRY(send(fd, "parent", 6, 0));
        meet(side, 3);
        return;
    }
    await_peer(side, 2);
    receive_with(fd, 100, ROOM, 0);
    TRY(recv(fd, in, 100, MSG_DONTWAIT));
    reach(side, 2);
    await_peer(side, 3);
    // Bytes of two senders are not merged.
    receive_with(fd, 100, ROOM, 0);
    receive_with(fd, 100, ROOM, 0);
    int off = 0;
    TRY(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &off, sizeof off));
    reach(side, 3);
}

CASE(credentials_from_the_beginning, UNIX | MIXED) {
    exchange_numbers(fd);
    credentials_with_every_message(fd, side);
}

CASE(credentials_later, WARM | UNIX | MIXED) {
    exchange_numbers(fd);
    credentials_with_every_message(fd, side);
}

CASE(credentials_of_ones_own_accord, WARM | UNIX) {
    exchange_numbers(fd);
    struct ucred own = {getpid(), getuid(), getgid()};
    if (side == CLIENT) {
        TRY(send_with(fd, "to nobody", SCM_CREDENTIALS, &own, sizeof own));
        meet(side, 1);
        meet(side, 2);
        TRY(send_with(fd, "to somebody", SCM_CREDENTIALS, &own, sizeof own));
        meet(side, 3);
        return;
    }
    meet(side, 1);
    receive_with(fd, 100, ROOM, 0);
    int on = 1;
    TRY(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    meet(side, 2);
    meet(side, 3);
    receive_with(fd, 100, ROOM, 0);
}

CASE(labels_of_senders, WARM | UNIX) {
    int on = 1;
    if (side == SERVER)
        TRY(setsockopt(fd, SOL_SOCKET, SO_PASSSEC, &on, sizeof on));
    meet(side, 1);
    if (side == CLIENT) {
        TRY(send(fd, "labeled", 7, 0));
    } else {
        TRY(recv(fd, in, 7, MSG_WAITALL));
        note_bytes("received", in, 7);
    }
    meet(side, 2);
}
