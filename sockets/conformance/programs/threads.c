// SPDX-License-Identifier: Apache-2.0 OR MIT
// Several threads on one connection.

#include "case.h"

static char in[1 << 20];

static void start(void *(*run)(void *), void *given, pthread_t *thread) {
    require(pthread_create(thread, NULL, run, given) == 0, "pthread_create");
}

static void *echo(void *given) {
    int fd = *(int *)given;
    char block[4096];
    ssize_t got;
    while ((got = recv(fd, block, sizeof block, 0)) > 0)
        require(send_all(fd, block, got) == (size_t)got, "send");
    return NULL;
}

struct reader {
    int fd;
    size_t total;
    uint64_t sum;
};

static void *read_all(void *given) {
    struct reader *reader = given;
    reader->total = receive_all(reader->fd, in, sizeof in);
    return NULL;
}

CASE(one_thread_reads_while_another_writes, WARM | RACE | V6 | MIXED) {
    pthread_t thread;
    if (side == SERVER) {
        start(echo, &fd, &thread);
        pthread_join(thread, NULL);
        note("ended");
        return;
    }
    static char out[1 << 20];
    struct reader reading = {fd, 0, 0};
    start(read_all, &reading, &thread);
    fill(out, sizeof out, 1);
    TRY(send_all(fd, out, sizeof out));
    pthread_join(thread, NULL);
    note("received %zu bytes, as sent: %d", reading.total, memcmp(in, out, sizeof in) == 0);
}

#define RECORD 100
#define RECORDS 2000

struct writer {
    int fd;
    unsigned char letter;
};

static void *write_records(void *given) {
    struct writer *writer = given;
    unsigned char record[RECORD];
    memset(record, writer->letter, RECORD);
    for (int i = 0; i < RECORDS; i++)
        require(send(writer->fd, record, RECORD, 0) == RECORD, "send");
    return NULL;
}

CASE(records_of_three_writers_stay_whole, WARM | RACE | MIXED) {
    if (side == CLIENT) {
        pthread_t threads[3];
        struct writer writers[3] = {{fd, 'a'}, {fd, 'b'}, {fd, 'c'}};
        for (int i = 0; i < 3; i++)
            start(write_records, &writers[i], &threads[i]);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        note("written");
        return;
    }
    int seen[256] = {0}, broken = 0;
    unsigned char record[RECORD];
    for (int i = 0; i < 3 * RECORDS; i++) {
        require(recv(fd, record, RECORD, MSG_WAITALL) == RECORD, "receive");
        for (int j = 1; j < RECORD; j++)
            broken += record[j] != record[0];
        seen[record[0]]++;
    }
    note("records: %d %d %d, broken: %d", seen['a'], seen['b'], seen['c'], broken);
}

static void *read_until_end(void *given) {
    struct reader *reader = given;
    unsigned char block[777];
    ssize_t got;
    while ((got = recv(reader->fd, block, sizeof block, 0)) > 0) {
        reader->total += got;
        for (ssize_t i = 0; i < got; i++)
            reader->sum += block[i];
    }
    return NULL;
}

CASE(three_readers_get_everything_once, WARM | RACE) {
    if (side == CLIENT) {
        static char out[400000];
        fill(out, sizeof out, 2);
        TRY(send_all(fd, out, sizeof out));
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 1);
        return;
    }
    pthread_t threads[3];
    struct reader readers[3];
    size_t total = 0;
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        readers[i] = (struct reader){fd, 0, 0};
        start(read_until_end, &readers[i], &threads[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        total += readers[i].total;
        sum += readers[i].sum;
    }
    note("bytes %zu, sum %llu", total, (unsigned long long)sum);
    meet(side, 1);
}

static void *read_one(void *given) {
    struct reader *reader = given;
    char byte = 0;
    reader->total = recv(reader->fd, &byte, 1, 0);
    reader->sum = byte;
    return NULL;
}

CASE(each_waiting_reader_is_woken_for_a_message, WARM | RACE) {
    if (side == CLIENT) {
        await_peer(side, 1);
        for (int i = 0; i < 4; i++) {
            sleep_ms(10);
            TRY(send(fd, "x", 1, 0));
        }
        meet(side, 2);
        return;
    }
    pthread_t threads[4];
    struct reader readers[4];
    for (int i = 0; i < 4; i++) {
        readers[i] = (struct reader){fd, 0, 0};
        start(read_one, &readers[i], &threads[i]);
    }
    sleep_ms(20);
    reach(side, 1);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        note("reader: %zu %c", readers[i].total, (char)readers[i].sum);
    }
    meet(side, 2);
}

static void note_clean_up(void *what) { note("cleaned up: %s", (const char *)what); }

static void *wait_in_recv(void *given) {
    char byte;
    pthread_cleanup_push(note_clean_up, "receiving");
    recv(*(int *)given, &byte, 1, 0);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *wait_in_poll(void *given) {
    struct pollfd asked = {*(int *)given, POLLIN, 0};
    pthread_cleanup_push(note_clean_up, "polling");
    poll(&asked, 1, -1);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *wait_in_send(void *given) {
    pthread_cleanup_push(note_clean_up, "sending");
    send(*(int *)given, in, 100000, 0);
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel(void *(*run)(void *), int fd) {
    pthread_t thread;
    void *result;
    start(run, &fd, &thread);
    sleep_ms(20);
    require(pthread_cancel(thread) == 0, "pthread_cancel");
    TRY(pthread_join(thread, &result));
    note("canceled: %d", result == PTHREAD_CANCELED);
}

CASE(a_waiting_thread_is_canceled, WARM | V6) {
    if (side == SERVER) {
        cancel(wait_in_recv, fd);
        cancel(wait_in_poll, fd);
        reach(side, 1);
        // No bytes were taken, and the connection still works.
        TRY(recv(fd, in, 4, MSG_WAITALL));
        note_bytes("received", in, 4);
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    TRY(send(fd, "data", 4, 0));
    meet(side, 2);
}

CASE(a_blocked_sender_is_canceled, WARM) {
    if (side == CLIENT) {
        fill_up(fd);
        cancel(wait_in_send, fd);
        reach(side, 1);
        await_peer(side, 1);
        await_events(fd, POLLOUT);
        TRY(send(fd, "x", 1, 0));
    } else {
        await_peer(side, 1);
        drain(fd);
        reach(side, 1);
        TRY(recv(fd, in, 1, 0));
    }
    meet(side, 2);
}

static void *one_message(void *given) {
    int end = *(int *)given;
    char byte = 'm';
    require(send(end, &byte, 1, 0) == 1, "send");
    require(recv(end, &byte, 1, 0) == 1, "receive");
    return NULL;
}

CASE(threads_come_and_go, WARM | RACE) {
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        start(one_message, &fd, &thread);
        pthread_join(thread, NULL);
    }
    note("done");
}

static void *serve(void *given) {
    int end = *(int *)given;
    warm_up(end, SERVER);
    char line[20];
    require(recv(end, line, 6, MSG_WAITALL) == 6, "receive");
    require(send(end, line, 6, 0) == 6, "send");
    close(end);
    return NULL;
}

CASE(a_thread_works_with_what_another_has_accepted, BARE | WARM | RACE) {
    if (side == CLIENT) {
        for (int i = 0; i < 3; i++) {
            int end = connect_there();
            warm_up(end, side);
            TRY(send(end, "hello!", 6, 0));
            TRY(recv(end, in, 100, MSG_WAITALL));
            close(end);
        }
        return;
    }
    int ends[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        ends[i] = accept(fd, NULL, NULL);
        start(serve, &ends[i], &threads[i]);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    note("served");
}
