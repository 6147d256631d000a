// SPDX-License-Identifier: Apache-2.0
// load [options] URL: sends requests and prints one line of JSON. It reads the processor time of the proxy's process
// tree itself at both ends of the measured window, so that the result does not depend on when a script is scheduled.
//
//   --proxy HOST:PORT      send absolute-form requests for http URLs; use CONNECT and TLS for https
//   --direct-to HOST:PORT  connect here without a proxy (127.0.0.1 and the URL's port)
//   -c N                   open N connections, each with a request in flight all the time (16)
//   -t SECONDS             measure for this long (3)
//   -w SECONDS             warm up for this long (0.5), after each connection has had a response, waited for the others
//                          and had another response; with 0, measure from the start
//   -n N                   stop after N responses
//   --close                use a new connection for each request
//   --hosts N              replace the % in the URL's host with 0001...N, the next number for each connection
//   --idle                 send one request per connection, then keep all open until standard input ends
//   --upload BYTES         PUT a body of this size
//   --expect-length BYTES  count a response with a body of another size as a failure
//   --anchors FILE         verify the server's certificate with the roots in FILE
//   --expect-issuer NAME   exit if another issuer signed the server's certificate
//   --pid PID              the proxy's process
//   --spin SECONDS         only use the processor, to keep its caches and clock rate as under load
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <openssl/err.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"
#include "load.h"
#include "usage.h"

struct options options = {
    .connections = 16, .seconds = 3, .warmUpSeconds = 0.5, .method = "GET", .expectedBytes = -1};
struct counts counts;
SSL_CTX *context;
int poller;
bool isMeasuring, isStopping, isHolding;
char firstError[200], issuer[200], protocol[96];

enum { mostOpening = 256, mostOpeningIdle = 32, longestOpening = 60, longestHold = 120 };

uint64_t monotonic_nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    exit(2);
}

// MARK: Options

static void read_address(const char *text) {
    char host[64];
    int port;
    options.address.sin_family = AF_INET;
    if (sscanf(text, "%63[0-9.]:%d", host, &port) != 2 || inet_pton(AF_INET, host, &options.address.sin_addr) != 1) {
        die("'%s' is not ADDRESS:PORT", text);
    }
    if (ntohl(options.address.sin_addr.s_addr) >> 24 != 127) die("'%s' is not a loopback address", text);
    options.address.sin_port = htons((uint16_t)port);
}

static void read_url(const char *url) {
    char scheme[8];
    if (sscanf(url, "%7[a-z]://%255[^:/]:%d%1023s", scheme, options.host, &options.port, options.path) != 4) {
        die("'%s' is not SCHEME://HOST:PORT/PATH", url);
    }
    options.isTLS = strcmp(scheme, "https") == 0;
}

static void spin(double seconds) {
    uint64_t end = monotonic_nanoseconds() + (uint64_t)(seconds * 1e9);
    while (monotonic_nanoseconds() < end) {
        for (int turn = 0; turn < 1000; turn++) __asm__ volatile("" ::: "memory");
    }
    exit(0);
}

static void read_options(char **arguments) {
    const char *url = NULL;
    for (char **next = arguments + 1; *next; next++) {
        const char *name = *next, *value;
        if (name[0] != '-') {
            url = name;
            continue;
        }
        if (strcmp(name, "--close") == 0) {
            options.closesEach = true;
            continue;
        }
        if (strcmp(name, "--idle") == 0) {
            options.isIdle = true;
            continue;
        }
        if (!(value = *++next)) die("%s needs a value", name);
        if (strcmp(name, "--proxy") == 0) {
            options.throughProxy = true;
            read_address(value);
        } else if (strcmp(name, "--direct-to") == 0) {
            read_address(value);
        } else if (strcmp(name, "-c") == 0) {
            options.connections = atoi(value);
        } else if (strcmp(name, "-t") == 0) {
            options.seconds = atof(value);
        } else if (strcmp(name, "-w") == 0) {
            options.warmUpSeconds = atof(value);
        } else if (strcmp(name, "-n") == 0) {
            options.requests = atol(value);
        } else if (strcmp(name, "--hosts") == 0) {
            options.hosts = atoi(value);
        } else if (strcmp(name, "--upload") == 0) {
            options.method = "PUT";
            options.bodyBytes = atol(value);
        } else if (strcmp(name, "--expect-length") == 0) {
            options.expectedBytes = atol(value);
        } else if (strcmp(name, "--anchors") == 0) {
            options.anchors = value;
        } else if (strcmp(name, "--expect-issuer") == 0) {
            options.issuer = value;
        } else if (strcmp(name, "--pid") == 0) {
            options.proxyPID = atoi(value);
        } else if (strcmp(name, "--spin") == 0) {
            spin(atof(value));
        } else {
            die("unknown option '%s'", name);
        }
    }
    if (!url) die("a URL is required");
    read_url(url);
    if (options.connections < 1 || options.connections > 50000) die("-c must be between 1 and 50000");
    if (options.address.sin_port == 0) {
        char text[32];
        snprintf(text, sizeof text, "127.0.0.1:%d", options.port);
        read_address(text);
    }
}

// MARK: The run

// Resumes no session, like a client program that has just started.
static void make_context(void) {
    context = SSL_CTX_new(TLS_client_method());
    if (!context) die("cannot create a TLS context");
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\x08http/1.1", 9);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (options.expectedBytes >= 128 * 1024) {
        SSL_CTX_set_read_ahead(context, 1);
        SSL_CTX_set_default_read_buffer_len(context, 128 * 1024);
    } else {
        SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    }
    if (!options.anchors) return;
    if (SSL_CTX_load_verify_locations(context, options.anchors, NULL) != 1) die("cannot read '%s'", options.anchors);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
}

static void raise_file_limit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < (rlim_t)options.connections + 32) {
        die("too many connections (%d) for the limit of %lu open files", options.connections, limit.rlim_cur);
    }
}

// Opens connections up to the limit of those that are still connecting.
static int open_more(int opened) {
    int most = options.isIdle ? mostOpeningIdle : mostOpening;
    while (opened < options.connections && opened - counts.answeredOnce < most) connection_open(opened++);
    return opened;
}

static void poll_once(void) {
    struct epoll_event events[256];
    int ready = epoll_wait(poller, events, 256, 20);
    for (int index = 0; index < ready && !isStopping; index++) connection_ready(events[index].data.ptr);
}

static double seconds_since(uint64_t began) { return (double)(monotonic_nanoseconds() - began) / 1e9; }

// Opens all connections, waits for one response on each, and keeps them open.
static int hold_idle(uint64_t began) {
    int opened = 0;
    isHolding = true;
    while (!isStopping && counts.idle < options.connections && seconds_since(began) < longestOpening) {
        opened = open_more(opened);
        poll_once();
    }
    printf("{\"idle\": %d, \"failed\": %lu, \"issuer\": \"%s\", \"error\": \"%s\"}\n", counts.idle,
        counts.failed + counts.refused, issuer, firstError);
    fflush(stdout);
    alarm(longestHold);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) continue;
    printf("{\"alive\": %d}\n", connections_alive(opened));
    return 0;
}

// Whether every connection is open and busy. After its first response, a connection waits for the others, so that the
// last ones do not compete with full load, and the proxy's connections to the origin exist before the measured window.
static bool is_warm(uint64_t began) {
    if (isHolding && counts.answeredOnce >= options.connections) connections_release();
    if (counts.answeredTwice >= options.connections) return true;
    if (seconds_since(began) > longestOpening) {
        die("%d of %d connections answered in %d s: %s", isHolding ? counts.answeredOnce : counts.answeredTwice,
            options.connections, longestOpening, firstError);
    }
    return false;
}

static int measure(uint64_t began) {
    int opened = 0;
    uint64_t windowBegan = 0, warm = options.warmUpSeconds > 0 ? 0 : began;
    double proxySeconds = 0;
    isHolding = !warm && !options.closesEach;
    while (!isStopping) {
        opened = open_more(opened);
        if (!warm && is_warm(began)) warm = monotonic_nanoseconds();
        if (!isMeasuring && warm && seconds_since(warm) >= options.warmUpSeconds) {
            counts = (struct counts){.answeredOnce = counts.answeredOnce, .answeredTwice = counts.answeredTwice};
            firstError[0] = 0;
            isMeasuring = true;
            windowBegan = monotonic_nanoseconds();
            proxySeconds = process_tree_seconds(options.proxyPID);
        }
        if (isMeasuring && seconds_since(windowBegan) >= options.seconds) break;
        poll_once();
    }
    proxySeconds = process_tree_seconds(options.proxyPID) - proxySeconds;
    double seconds = windowBegan ? seconds_since(windowBegan) : 0;
    printf("{\"answered\": %lu, \"seconds\": %.3f, \"failed\": %lu, \"refused\": %lu, \"bytes\": %lu, "
           "\"opened\": %lu, \"handshakes\": %lu, \"cpu_s\": %.3f, \"p50_us\": %lu, \"p90_us\": %lu, "
           "\"p99_us\": %lu, \"issuer\": \"%s\", \"protocol\": \"%s\", \"error\": \"%s\"}\n",
        counts.answered, seconds, counts.failed, counts.refused, counts.bytes, counts.opened, counts.handshakes,
        proxySeconds, histogram_percentile(0.5), histogram_percentile(0.9), histogram_percentile(0.99), issuer,
        protocol, firstError);
    return counts.answered > 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    (void)argc;
    signal(SIGPIPE, SIG_IGN);
    read_options(argv);
    raise_file_limit();
    make_context();
    connections_make();
    poller = epoll_create1(EPOLL_CLOEXEC);
    alarm((unsigned)(options.warmUpSeconds + options.seconds) + 2 * longestOpening);
    uint64_t began = monotonic_nanoseconds();
    return options.isIdle ? hold_idle(began) : measure(began);
}
