// SPDX-License-Identifier: Apache-2.0
// A load generator for a forward proxy: one thread, epoll, OpenSSL. main.c reads the options and keeps the time,
// connection.c makes requests one after another on each connection.
#pragma once
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

struct options {
    bool isTLS, throughProxy, closesEach, isIdle;
    char host[256], path[1024];
    int port;
    struct sockaddr_in address;
    int connections, hosts;
    double seconds, warmUpSeconds;
    long requests;
    const char *method, *anchors, *issuer;
    long bodyBytes, expectedBytes;
    int proxyPID;
};

struct counts {
    uint64_t answered, failed, refused, bytes, opened, handshakes;
    int answeredOnce, answeredTwice, idle;
};

extern struct options options;
extern struct counts counts;
extern SSL_CTX *context;
extern int poller;
extern bool isMeasuring, isStopping;
// After its first answer a connection waits.
extern bool isHolding;
extern char firstError[200], issuer[200], protocol[96];

struct connection;

uint64_t monotonic_nanoseconds(void);
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Room for `options.connections`; none is open.
void connections_make(void);
void connection_open(int index);
void connection_ready(struct connection *connection);

// Ends the waiting.
void connections_release(void);

// How many of the first `opened` connections the other side has not closed.
int connections_alive(int opened);
