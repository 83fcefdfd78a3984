// SPDX-License-Identifier: Apache-2.0 OR MIT
// Names of Unix sockets, and credentials of the peer.

#include "case.h"

#include <sys/stat.h>

static char in[100];

// Notes the form of a name, without the parts that change from run to run.
static void note_name(const char *what, const struct sockaddr_un *name, socklen_t length) {
    size_t letters = length - offsetof(struct sockaddr_un, sun_path);
    const char *kind = length <= offsetof(struct sockaddr_un, sun_path) ? "none"
                       : name->sun_path[0] ? "a path" : "abstract";
    note("%s: length %u, family %d, %s", what, length, length ? name->sun_family : 0, kind);
    // Names of `common_name` end with `what`.
    if (length > 12 && !name->sun_path[0])
        note("ends with %.6s", name->sun_path + letters - 6);
}

static void note_both_names(int fd) {
    struct sockaddr_un name = {0};
    socklen_t length = sizeof name;
    TRY(getsockname(fd, (struct sockaddr *)&name, &length));
    note_name("own", &name, length);
    memset(&name, 0, length = sizeof name);
    TRY(getpeername(fd, (struct sockaddr *)&name, &length));
    note_name("peer's", &name, length);
}

// A unique name that both sides know.
static socklen_t common_name(struct sockaddr_un *name, const char *what, int is_path) {
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    int skipped = !is_path;
    int letters = snprintf(name->sun_path + skipped, sizeof name->sun_path - skipped,
                           "/tmp/conformance-%07d-%s", getppid(), what);
    return offsetof(struct sockaddr_un, sun_path) + letters + 1;
}

CASE(names_of_a_connection, WARM | UNIX | MIXED) {
    note_both_names(fd);
    struct sockaddr_un name;
    socklen_t length = 1;
    TRY(getpeername(fd, (struct sockaddr *)&name, &length));
    note("length asked for by one byte: %u", length);
    length = -1;
    TRY(getsockname(fd, (struct sockaddr *)&name, &length));
    meet(side, 1);
}

CASE(accepted_with_the_name_of_nobody, BARE | WARM | UNIX) {
    struct sockaddr_un name = {0};
    socklen_t length = sizeof name;
    int end = side == SERVER ? accept(fd, (struct sockaddr *)&name, &length) : connect_there();
    if (side == SERVER)
        note_name("who was accepted", &name, length);
    warm_up(end, side);
    note_both_names(end);
    meet(side, 1);
}

static void talk_by_name(int end, enum side side) {
    struct sockaddr_un name = {0};
    socklen_t length = sizeof name;
    if (side == CLIENT) {
        TRY(send(end, "one", 3, 0));
        meet(side, 1);
        TRY(send(end, "two", 3, 0));
        meet(side, 2);
        TRY(recv(end, in, 3, 0));
        return;
    }
    TRY(recvfrom(end, in, 3, MSG_WAITALL, (struct sockaddr *)&name, &length));
    note_name("who has sent", &name, length);
    meet(side, 1);
    struct iovec part = {in, 3};
    memset(&name, 0, sizeof name);
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_name = &name,
                             .msg_namelen = sizeof name};
    TRY(recvmsg(end, &message, 0));
    note_name("who has sent", &name, message.msg_namelen);
    meet(side, 2);
    TRY(send(end, "end", 3, 0));
}

CASE(senders_without_a_name, WARM | UNIX | MIXED) {
    talk_by_name(fd, side);
    meet(side, 3);
}

CASE(senders_with_an_abstract_name, BARE | WARM | UNIX | MIXED) {
    int end = side == SERVER ? -1 : socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name;
    if (side == CLIENT) {
        TRY(bind(end, (struct sockaddr *)&name, common_name(&name, "sender", 0)));
        socklen_t length;
        const struct sockaddr *there = address(&length);
        TRY(connect(end, there, length));
    } else {
        end = accept(fd, NULL, NULL);
    }
    warm_up(end, side);
    talk_by_name(end, side);
    meet(side, 3);
}

CASE(a_name_that_comes_later, WARM | UNIX) {
    // A connected socket can still be bound, and has the name from then on.
    if (side == CLIENT) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        TRY(bind(fd, (struct sockaddr *)&name, sizeof name.sun_family));
    }
    meet(side, 1);
    if (side == SERVER || !is_pair())
        note_both_names(fd);
    meet(side, 2);
    struct sockaddr_un name = {0};
    socklen_t length = sizeof name;
    if (side == CLIENT) {
        TRY(send(fd, "named", 5, 0));
    } else {
        TRY(recvfrom(fd, in, 5, 0, (struct sockaddr *)&name, &length));
        note_name("who has sent", &name, length);
        length = 0;
        TRY(recvfrom(fd, in, 5, MSG_DONTWAIT, (struct sockaddr *)&name, &length));
    }
    meet(side, 3);
}

CASE(room_for_a_part_of_a_name, BARE | WARM | UNIX) {
    struct sockaddr_un name;
    int end = side == SERVER ? accept(fd, NULL, NULL) : socket(AF_UNIX, SOCK_STREAM, 0);
    if (side == CLIENT) {
        TRY(bind(end, (struct sockaddr *)&name, common_name(&name, "a_longer_name", 0)));
        socklen_t length;
        const struct sockaddr *there = address(&length);
        TRY(connect(end, there, length));
    }
    warm_up(end, side);
    if (side == CLIENT) {
        TRY(send(end, "data", 4, 0));
    } else {
        socklen_t length = 12;
        memset(&name, 'z', sizeof name);
        TRY(recvfrom(end, in, 4, 0, (struct sockaddr *)&name, &length));
        note("whole length: %d, behind the room: %c", length > 30, ((char *)&name)[12]);
    }
    meet(side, 1);
}

CASE(a_listener_on_a_path, BARE | WARM | UNIX | MIXED) {
    struct sockaddr_un name;
    socklen_t length = common_name(&name, "path", 1);
    int end = -1;
    if (side == SERVER) {
        int listening = socket(AF_UNIX, SOCK_STREAM, 0);
        TRY(bind(listening, (struct sockaddr *)&name, length));
        TRY(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, length));
        TRY(listen(listening, 5));
        meet(side, 1);
        end = TRY_OK(accept(listening, NULL, NULL));
    } else {
        meet(side, 1);
        end = TRY_OK(socket(AF_UNIX, SOCK_STREAM, 0));
        TRY(connect(end, (struct sockaddr *)&name, length));
    }
    warm_up(end, side);
    note_both_names(end);
    talk_by_name(end, side);
    struct stat status;
    if (side == SERVER) {
        TRY(stat(name.sun_path, &status));
        note("a socket: %d", S_ISSOCK(status.st_mode) != 0);
        TRY(unlink(name.sun_path));
    }
    meet(side, 3);
    note_both_names(end);
    if (side == CLIENT)
        TRY(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, length));
    TRY(send(end, "unlinked", 8, 0));
    TRY(recv(end, in, 8, MSG_WAITALL));
    meet(side, 4);
}

CASE(paths_that_nobody_listens_on, UNIX) {
    if (side == CLIENT || is_pair())
        return;
    struct sockaddr_un name;
    socklen_t length = common_name(&name, "gone", 1);
    int end = socket(AF_UNIX, SOCK_STREAM, 0);
    TRY(connect(end, (struct sockaddr *)&name, length));
    int other = socket(AF_UNIX, SOCK_STREAM, 0);
    TRY(bind(other, (struct sockaddr *)&name, length));
    TRY(connect(end, (struct sockaddr *)&name, length));
    TRY(listen(other, 5));
    TRY(close(other));
    TRY(connect(end, (struct sockaddr *)&name, length));
    TRY(bind(end, (struct sockaddr *)&name, length));
    TRY(unlink(name.sun_path));
    int datagrams = socket(AF_UNIX, SOCK_DGRAM, 0);
    TRY(bind(datagrams, (struct sockaddr *)&name, length));
    TRY(connect(end, (struct sockaddr *)&name, length));
    TRY(unlink(name.sun_path));
    TRY(connect(end, (struct sockaddr *)&name, sizeof name + 1));
    TRY(connect(end, (struct sockaddr *)&name, 1));
    TRY(send(end, "x", 1, MSG_NOSIGNAL));
    TRY(recv(end, in, 1, 0));
    TRY(sendto(end, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&name, length));
}

CASE(an_address_to_send_to, WARM | UNIX) {
    struct sockaddr_un name;
    socklen_t length = common_name(&name, "nobody", 0);
    struct iovec part = {in, 3};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_name = &name,
                             .msg_namelen = length};
    if (side == CLIENT) {
        TRY(sendto(fd, "x", 1, 0, (struct sockaddr *)&name, length));
        TRY(sendmsg(fd, &message, 0));
        TRY(sendto(fd, "y", 1, 0, (struct sockaddr *)&name, 0));
        TRY(sendto(fd, "z", 1, 0, NULL, 0));
    } else {
        TRY(recv(fd, in, 2, MSG_WAITALL));
        note_bytes("received", in, 2);
    }
    meet(side, 1);
}

static void note_credentials(int fd) {
    struct ucred peer = {0, -1, -1};
    socklen_t length = sizeof peer;
    TRY(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length));
    note("parent %d, another %d, user %d, group %d", peer.pid == getppid(),
         peer.pid > 0 && peer.pid != getppid() && peer.pid != getpid(), peer.uid == getuid(),
         peer.gid == getgid());
}

CASE(who_the_peer_is, WARM | UNIX | MIXED) {
    note_credentials(fd);
    char label[100];
    socklen_t length = sizeof label;
    int result = getsockopt(fd, SOL_SOCKET, SO_PEERSEC, label, &length);
    note("SO_PEERSEC: %d %s", result, result < 0 ? strerrorname_np(errno) : "");
    length = sizeof label;
    TRY_OK(getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, label, &length));
    meet(side, 1);
}

CASE(who_the_peer_was, WARM | UNIX) {
    if (side == CLIENT)
        exit(0);
    await_events(fd, POLLRDHUP);
    note_credentials(fd);
    note_both_names(fd);
}
