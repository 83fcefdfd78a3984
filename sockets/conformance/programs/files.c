// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections combined with files, pipes and the streams of the C library.

#include "case.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

static char in[500000], out[500000];

static int file_of(size_t length, uint64_t seed) {
    int file = memfd_create("file", 0);
    fill(out, length, seed);
    require(file >= 0 && write(file, out, length) == (ssize_t)length, "write");
    lseek(file, 0, SEEK_SET);
    return file;
}

CASE(a_file_is_sent, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        int file = file_of(300000, 1);
        TRY(send(fd, "head", 4, 0));
        off_t at = 100;
        TRY(sendfile(fd, file, &at, 1000));
        note("at %ld, the file at %ld", (long)at, (long)lseek(file, 0, SEEK_CUR));
        size_t left = 300000;
        while (left > 0) {
            ssize_t sent = sendfile(fd, file, NULL, left);
            require(sent > 0, "sendfile");
            left -= sent;
        }
        note("the file at %ld", (long)lseek(file, 0, SEEK_CUR));
        TRY(sendfile(fd, file, NULL, 100));
        TRY(send(fd, "foot", 4, 0));
        meet(side, 1);
        return;
    }
    TRY(receive_all(fd, in, 301008));
    note_bytes("received", in, 301008);
    meet(side, 1);
}

CASE(sendfile_that_fails, WARM) {
    int file = file_of(100, 1), ends[2];
    require(pipe(ends) == 0, "pipe");
    off_t negative = -1;
    TRY(sendfile(fd, 850, NULL, 10));
    TRY(sendfile(850, file, NULL, 10));
    TRY(sendfile(fd, file, &negative, 10));
    TRY(sendfile(fd, file, NULL, 0));
    TRY(shutdown(fd, SHUT_WR));
    signal(SIGPIPE, SIG_IGN);
    TRY(sendfile(fd, file, NULL, 10));
    meet(side, 1);
    note("bytes: %zu", drain(fd));
}

CASE(sendfile_by_its_other_name, WARM) {
    if (side == CLIENT) {
        int file = file_of(5000, 6);
        off64_t at = 1000;
        TRY(sendfile64(fd, file, &at, 3000));
        note("at %ld", (long)at);
    } else {
        TRY(recv(fd, in, 3000, MSG_WAITALL));
        note_bytes("received", in, 3000);
    }
    meet(side, 1);
}

CASE(sendfile_without_blocking, WARM) {
    if (side == CLIENT) {
        int file = file_of(1000, 2);
        fill_up(fd);
        set_blocking(fd, 0);
        TRY(sendfile(fd, file, NULL, 1000));
        note("the file at %ld", (long)lseek(file, 0, SEEK_CUR));
        reach(side, 1);
        await_peer(side, 1);
        await_events(fd, POLLOUT);
        TRY(sendfile(fd, file, NULL, 1000));
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    drain(fd);
    reach(side, 1);
    TRY(recv(fd, in, 1000, MSG_WAITALL));
    note_bytes("received", in, 1000);
    meet(side, 2);
}

CASE(spliced_from_a_pipe, WARM | V6) {
    if (side == CLIENT) {
        int ends[2];
        require(pipe(ends) == 0, "pipe");
        fill(out, 50000, 3);
        require(write(ends[1], out, 50000) == 50000, "write");
        size_t left = 50000;
        while (left > 0) {
            ssize_t moved = splice(ends[0], NULL, fd, NULL, left, 0);
            require(moved > 0, "splice");
            left -= moved;
        }
        close(ends[1]);
        TRY(splice(ends[0], NULL, fd, NULL, 10, 0));
        TRY(splice(ends[0], NULL, fd, &(off_t){0}, 10, 0));
        meet(side, 1);
        return;
    }
    TRY(recv(fd, in, 50000, MSG_WAITALL));
    note_bytes("received", in, 50000);
    meet(side, 1);
}

CASE(spliced_without_waiting_for_the_pipe, WARM | V6) {
    // Whether to wait for the socket depends on the socket's own flags.
    if (side == CLIENT) {
        await_peer(side, 1);
        sleep_ms(30);
        TRY(send(fd, "data", 4, 0));
        meet(side, 2);
        return;
    }
    int ends[2];
    require(pipe(ends) == 0, "pipe");
    reach(side, 1);
    TRY(splice(fd, NULL, ends[1], NULL, 100, SPLICE_F_NONBLOCK));
    meet(side, 2);
}

CASE(spliced_into_a_pipe, WARM | V6) {
    if (side == CLIENT) {
        fill(out, 50000, 4);
        TRY(send(fd, out, 50000, 0));
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 1);
        return;
    }
    int ends[2];
    require(pipe(ends) == 0, "pipe");
    size_t total = 0;
    uint64_t sum = CHECKSUM_BEGIN;
    for (;;) {
        ssize_t moved = splice(fd, NULL, ends[1], NULL, 10000, 0);
        require(moved >= 0, "splice");
        if (moved == 0)
            break;
        require(read(ends[0], in, moved) == moved, "read");
        sum = checksum(sum, in, moved);
        total += moved;
    }
    note("spliced %zu bytes %016llx", total, (unsigned long long)sum);
    meet(side, 1);
}

CASE(splice_without_blocking, WARM) {
    int ends[2];
    require(pipe(ends) == 0, "pipe");
    set_blocking(fd, 0);
    TRY(splice(fd, NULL, ends[1], NULL, 100, SPLICE_F_NONBLOCK));
    TRY(splice(ends[0], NULL, fd, NULL, 100, SPLICE_F_NONBLOCK));
    meet(side, 1);
}

// Lines over a C library stream that was made before the connection could be upgraded.
CASE(a_stream_of_the_library_from_the_beginning, BARE | V6 | MIXED) {
    int end = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
    FILE *stream = fdopen(end, "r+");
    require(stream != NULL, "fdopen");
    for (int i = 0; i < 100; i++) {
        char line[100];
        if (side == CLIENT) {
            require(fprintf(stream, "line %d\n", i) > 0 && fflush(stream) == 0, "fprintf");
            require(fgets(line, sizeof line, stream) != NULL, "fgets");
            note_bytes("answer", line, strlen(line) - 1);
        } else {
            require(fgets(line, sizeof line, stream) != NULL, "fgets");
            require(fprintf(stream, "answer to %s", line) > 0 && fflush(stream) == 0, "fprintf");
        }
    }
    TRY(fclose(stream));
}

CASE(a_stream_of_the_library_after_the_upgrade, WARM) {
    FILE *stream = fdopen(dup(fd), side == CLIENT ? "w" : "r");
    require(stream != NULL, "fdopen");
    if (side == CLIENT) {
        TRY(send(fd, "before\n", 7, 0));
        for (int i = 0; i < 20; i++)
            fprintf(stream, "line %d\n", i);
        TRY(fclose(stream));
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 1);
        return;
    }
    char line[100];
    while (fgets(line, sizeof line, stream))
        note_bytes("line", line, strlen(line) - 1);
    note("at the end: %d", feof(stream) != 0);
    TRY(fclose(stream));
    meet(side, 1);
}

CASE(formatted_output_to_a_connection, WARM) {
    if (side == CLIENT) {
        TRY(dprintf(fd, "%s %d\n", "number", 42));
        meet(side, 1);
        return;
    }
    TRY(recv(fd, in, 10, MSG_WAITALL));
    note_bytes("received", in, 9);
    meet(side, 1);
}

// Symbols behind `dprintf` and `vdprintf` in a program compiled with fortify checks.
int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list arguments);

static int print(int fd, int checked, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int printed = checked ? __vdprintf_chk(fd, 1, format, arguments)
                          : vdprintf(fd, format, arguments);
    va_end(arguments);
    return printed;
}

CASE(formatted_output_of_every_length, WARM | V6) {
    static char word[6000];
    memset(word, 'w', sizeof word - 1);
    if (side == CLIENT) {
        TRY(dprintf(fd, "%d %s %g %d %d %d %d %c|", 1, "two", 3.25, 4, 5, 6, 7, '8'));
        TRY(__dprintf_chk(fd, 1, "%s %g %g %d|", "one", 2.5, 3.5, 4));
        TRY(print(fd, 0, "%s %d|", word, 9));
        TRY(print(fd, 1, "%s %d|", word, 10));
        TRY(dprintf(fd, "%s", ""));
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 1);
        return;
    }
    ssize_t got = recv(fd, in, sizeof in, MSG_WAITALL);
    note_bytes("received", in, got);
    note("%.60s", in);
    meet(side, 1);
}

CASE(the_standard_streams_are_a_connection, WARM) {
    // As inetd starts its servers, but without exec.
    if (side == CLIENT) {
        TRY(send(fd, "question\n", 9, 0));
        TRY(recv(fd, in, 7, MSG_WAITALL));
        note_bytes("received", in, 6);
        meet(side, 1);
        return;
    }
    TRY(dup2(fd, 0));
    TRY(dup2(fd, 1));
    TRY(close(fd));
    TRY(read(0, in, 9));
    note_bytes("received", in, 8);
    TRY(write(1, "answer\n", 7));
    meet(side, 1);
}
