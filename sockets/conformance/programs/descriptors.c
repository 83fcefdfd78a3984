// SPDX-License-Identifier: Apache-2.0 OR MIT
// Operations on descriptors of connections: copies, flags, numbers, control calls.

#include "case.h"

#include <dirent.h>
#include <linux/sockios.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static char in[100000], out[100000];

CASE(a_copy_by_dup, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        int copy = TRY(dup(fd));
        TRY(send(fd, "one ", 4, 0));
        TRY(send(copy, "two ", 4, 0));
        TRY(close(fd));
        TRY(send(fd, "gone", 4, 0));
        TRY(send(copy, "three", 5, 0));
        TRY(recv(copy, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        TRY(close(copy));
        return;
    }
    TRY(recv(fd, in, 13, MSG_WAITALL));
    note_bytes("received", in, 13);
    TRY(send(fd, "answer", 6, 0));
    TRY(recv(fd, in, 10, 0));
}

CASE(copies_by_every_call, WARM) {
    if (side == CLIENT) {
        int copies[5];
        copies[0] = TRY(dup2(fd, 60));
        copies[1] = TRY(dup3(fd, 61, O_CLOEXEC));
        copies[2] = TRY(fcntl(fd, F_DUPFD, 70));
        copies[3] = TRY(fcntl(fd, F_DUPFD_CLOEXEC, 70));
        copies[4] = fd;
        for (int i = 0; i < 5; i++) {
            TRY(fcntl(copies[i], F_GETFD));
            TRY(send(copies[i], "abcde" + i, 1, 0));
        }
        TRY(dup3(fd, fd, 0));
        TRY(dup3(fd, 61, O_NONBLOCK));
        TRY(dup2(fd, fd));
        TRY(dup2(fd, -1));
        TRY(dup2(fd, 1 << 20));
        TRY(fcntl(fd, F_DUPFD, -1));
        for (int i = 0; i < 4; i++)
            TRY(close(copies[i]));
        TRY(send(fd, "last", 4, 0));
        return;
    }
    TRY(recv(fd, in, 9, MSG_WAITALL));
    note_bytes("received", in, 9);
    TRY(recv(fd, in, 9, 0));
}

CASE(a_connection_replaced_by_dup2, WARM) {
    if (side == CLIENT) {
        int null = open("/dev/null", O_RDWR);
        TRY(send(fd, "before", 6, 0));
        TRY(dup2(null, fd) == fd);
        TRY(write(fd, "into nothing", 12));
        TRY(read(fd, in, 10));
        TRY(send(fd, "x", 1, 0));
        meet(side, 1);
        return;
    }
    TRY(recv(fd, in, 6, MSG_WAITALL));
    TRY(recv(fd, in, 6, 0));
    meet(side, 1);
}

CASE(a_connection_put_over_another_descriptor, WARM) {
    if (side == CLIENT) {
        int ends[2];
        require(pipe(ends) == 0, "pipe");
        TRY(dup2(fd, ends[1]) == ends[1]);
        TRY(close(fd));
        TRY(write(ends[1], "through the connection", 22));
        TRY(read(ends[0], in, 10));
        TRY(close(ends[1]));
        return;
    }
    TRY(recv(fd, in, 22, MSG_WAITALL));
    note_bytes("received", in, 22);
    TRY(recv(fd, in, 6, 0));
}

CASE(a_number_used_again_after_close, WARM) {
    // The number of a closed connection is assigned to a pipe, then to a new connection.
    if (side == CLIENT) {
        int ends[2], number = fd;
        TRY(close(fd));
        require(pipe(ends) == 0, "pipe");
        note("the number is used again: %d", ends[0] == number);
        TRY(write(ends[1], "pipe", 4));
        TRY(read(number, in, 10));
        note_bytes("read", in, 4);
        TRY(send(number, "x", 1, 0));
    } else {
        TRY(recv(fd, in, 6, 0));
    }
    meet(side, 1);
}

CASE(closed_past_the_c_library, WARM) {
    // As libuv closes.
    if (side == CLIENT) {
        TRY(send(fd, "before", 6, 0));
        TRY(syscall(SYS_close, fd));
        TRY(syscall(SYS_close, fd));
        TRY(fcntl(fd, F_GETFD));
    } else {
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        TRY(recv(fd, in, 6, 0));
    }
    meet(side, 1);
}

CASE(copies_share_whether_they_block, WARM) {
    int copy = dup(fd);
    TRY(fcntl(copy, F_GETFL));
    TRY(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    TRY(fcntl(copy, F_GETFL));
    TRY(recv(copy, in, 10, 0));
    TRY(fcntl(copy, F_SETFL, 0));
    TRY(fcntl(fd, F_GETFL));
    int on = 1, off = 0;
    TRY(ioctl(copy, FIONBIO, &on));
    TRY(fcntl(fd, F_GETFL));
    TRY(recv(fd, in, 10, 0));
    TRY(ioctl(fd, FIONBIO, &off));
    TRY(fcntl(copy, F_GETFL));
    meet(side, 1);
}

CASE(close_on_exec_is_of_the_descriptor, WARM) {
    int copy = dup(fd);
    TRY(fcntl(fd, F_GETFD));
    TRY(fcntl(fd, F_SETFD, FD_CLOEXEC));
    TRY(fcntl(fd, F_GETFD));
    TRY(fcntl(copy, F_GETFD));
    TRY(ioctl(copy, FIOCLEX));
    TRY(fcntl(copy, F_GETFD));
    TRY(ioctl(copy, FIONCLEX));
    TRY(fcntl(copy, F_GETFD));
    meet(side, 1);
}

CASE(a_shutdown_reaches_all_copies, WARM) {
    if (side == CLIENT) {
        int copy = dup(fd);
        TRY(shutdown(copy, SHUT_WR));
        TRY(close(copy));
        TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    } else {
        TRY(recv(fd, in, 6, 0));
    }
    meet(side, 1);
}

CASE(new_descriptors_have_the_lowest_numbers, WARM | V6) {
    // The numbers themselves are in the transcript.
    int ends[2];
    TRY(fd);
    TRY(open("/dev/null", O_RDONLY));
    TRY(socket(family(), SOCK_STREAM, 0));
    TRY(pipe(ends));
    note("pipe: %d %d", ends[0], ends[1]);
    TRY(close(ends[0]));
    TRY(dup(fd));
    TRY(close(ends[1]));
    TRY(dup(fd));
    TRY(dup(fd));
    TRY(close(fd));
    TRY(open("/dev/null", O_RDONLY));
    meet(side, 1);
}

CASE(the_limit_of_descriptors, WARM) {
    // All numbers below the limit are available, as if the library needed none.
    int count = 0, got;
    while (count < 2000 && (got = dup(fd)) >= 0 && got < 800)
        count++;
    note("copies below 800: %d", count);
    TRY(send(fd, "x", 1, 0));
    TRY(recv(fd, in, 1, 0));
    meet(side, 1);
}

CASE(close_range_closes_connections, WARM) {
    if (side == CLIENT) {
        TRY(dup2(fd, 40));
        TRY(send(40, "data", 4, 0));
        TRY(close_range(3, 45, 0));
        TRY(send(40, "data", 4, 0));
        TRY(recv(fd, in, 4, 0));
        meet(side, 1);
        return;
    }
    TRY(recv(fd, in, 4, MSG_WAITALL));
    TRY(recv(fd, in, 4, 0));
    meet(side, 1);
}

CASE(closefrom_closes_connections, WARM) {
    if (side == CLIENT) {
        TRY(dup2(fd, 40));
        TRY(send(40, "data", 4, 0));
        closefrom(3);
        TRY(send(40, "data", 4, 0));
        TRY(send(fd, "data", 4, 0));
        meet(side, 1);
        return;
    }
    TRY(recv(fd, in, 4, MSG_WAITALL));
    TRY(recv(fd, in, 4, 0));
    meet(side, 1);
}

CASE(closing_everything_as_daemons_do, WARM) {
    if (side == CLIENT) {
        for (int i = 3; i < 1024; i++)
            close(i);
        TRY(send(fd, "data", 4, 0));
        int new = TRY(open("/dev/null", O_RDONLY));
        TRY(read(new, in, 1));
        struct sockaddr_storage where;
        socklen_t length;
        TRY(listen_here(&where, &length));
        int again = TRY(socket(family(), SOCK_STREAM, 0));
        TRY(connect(again, (struct sockaddr *)&where, length));
        TRY(send(again, "connected", 9, 0));
        meet(side, 1);
        return;
    }
    TRY(recv(fd, in, 4, 0));
    meet(side, 1);
}

CASE(bytes_that_can_be_read, WARM | V6 | MIXED) {
    int there = -1;
    TRY(ioctl(fd, FIONREAD, &there));
    note("there: %d", there);
    meet(side, 1);
    if (side == CLIENT) {
        TRY(send(fd, out, 1000, 0));
        TRY(send(fd, out, 40000, 0));
        meet(side, 2);
        return;
    }
    await_bytes(fd, 41000);
    TRY(ioctl(fd, FIONREAD, &there));
    note("there: %d", there);
    TRY(recv(fd, in, 500, MSG_WAITALL));
    TRY(ioctl(fd, SIOCINQ, &there));
    note("there: %d", there);
    TRY(recv(fd, in, 40500, MSG_WAITALL));
    TRY(ioctl(fd, FIONREAD, &there));
    note("there: %d", there);
    meet(side, 2);
}

CASE(bytes_that_were_not_sent, WARM) {
    int left = -1;
    if (side == CLIENT) {
        TRY(ioctl(fd, SIOCOUTQ, &left));
        note("left: %d", left);
        TRY(send(fd, out, 5000, 0));
        await_peer(side, 1);
        reach(side, 1);
        // The kernel acknowledges after some time.
        for (int i = 0; i < 1000 && ioctl(fd, SIOCOUTQ, &left) == 0 && left > 0; i++)
            sleep_ms(2);
        note("left: %d", left);
        meet(side, 2);
        return;
    }
    TRY(recv(fd, in, 5000, MSG_WAITALL));
    meet(side, 1);
    meet(side, 2);
}

CASE(what_a_connection_is, WARM | V6) {
    struct stat status;
    TRY(fstat(fd, &status));
    note("a socket: %d", S_ISSOCK(status.st_mode) != 0);
    TRY(isatty(fd));
    char path[40], target[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    note("is called a socket: %d", length > 8 && memcmp(target, "socket:[", 8) == 0);
    int value = 0;
    TRY(ioctl(fd, 0x5401, &value));
    TRY(ioctl(fd, 0xdead, &value));
    TRY(fcntl(fd, 9999, 0));
    meet(side, 1);
}

CASE(descriptors_as_proc_shows_them, WARM) {
    // No descriptor below 256 that the program did not open.
    char seen[256] = {0};
    DIR *folder = opendir("/proc/self/fd");
    require(folder != NULL, "opendir");
    for (struct dirent *entry; (entry = readdir(folder));) {
        int number = atoi(entry->d_name);
        if (number > 2 && number < 256 && number != dirfd(folder))
            seen[number] = 1;
    }
    closedir(folder);
    for (int i = 0; i < 256; i++) {
        if (seen[i])
            note("open: %d", i);
    }
    meet(side, 1);
}
