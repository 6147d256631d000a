// SPDX-License-Identifier: Apache-2.0
// A load generator for forward proxies with one thread, epoll and OpenSSL. main.c parses the options and times the run;
// connection.c sends requests one after another on each connection.
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
// A connection waits after its first response.
extern bool isHolding;
extern char firstError[200], issuer[200], protocol[96];

struct connection;

uint64_t monotonic_nanoseconds(void);
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Allocates `options.connections` closed connections.
void connections_make(void);
void connection_open(int index);
void connection_ready(struct connection *connection);

// Lets the waiting connections continue.
void connections_release(void);

// The number of the first `opened` connections that the peer has not closed.
int connections_alive(int opened);
