// SPDX-License-Identifier: Apache-2.0
// A connection goes through the states in order, and from `reading the body` back to `writing`. A connection that fails
// is counted and reopened. Responses must have a Content-Length or end with the connection.
#define _GNU_SOURCE
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "histogram.h"

enum state {
    closed,
    connecting,
    askingForTunnel,
    readingTunnel,
    handshaking,
    writing,
    readingHead,
    readingBody,
    idle,
};

// The result of a step: wait until the socket is ready, go to the next state, or the connection has been replaced.
enum progress { blocked, advanced, ended };

enum { again = -1, broken = -2, mostFailuresInARow = 400, stepsPerTurn = 64 };

struct connection {
    int socket, host;
    SSL *tls;
    enum state state;
    bool waitsForRoom, isReused, untilEnd, closesAfter;
    int answers;
    uint64_t began;
    size_t requestLength, written, headLength;
    long bodyWritten, left, got;
    char request[512], head[4096];
};

static struct connection *connections;
static char received[256 * 1024], uploaded[64 * 1024];
static int failuresInARow, lastHost;

void connections_make(void) {
    connections = calloc((size_t)options.connections, sizeof *connections);
    if (!connections) die("no memory for %d connections", options.connections);
    for (int index = 0; index < options.connections; index++) connections[index].socket = -1;
    for (size_t index = 0; index < sizeof uploaded; index++) uploaded[index] = (char)(index * 131 >> 3);
}

int connections_alive(int opened) {
    int alive = 0;
    for (int index = 0; index < opened; index++) {
        char byte;
        if (connections[index].socket < 0) continue;
        ssize_t length = recv(connections[index].socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (length > 0 || (length < 0 && errno == EAGAIN)) alive++;
    }
    return alive;
}

// MARK: Opening and closing

// Replaces the first `%` of the host name with a four-digit number that differs for each connection.
static void host_name(const struct connection *connection, char *name, size_t size) {
    const char *percent = options.hosts > 0 ? strchr(options.host, '%') : NULL;
    if (!percent) {
        snprintf(name, size, "%s", options.host);
    } else {
        int before = (int)(percent - options.host);
        snprintf(name, size, "%.*s%04d%s", before, options.host, connection->host, percent + 1);
    }
}

static void write_request(struct connection *connection) {
    char name[256], absolute[320] = "", length[48] = "";
    host_name(connection, name, sizeof name);
    if (options.throughProxy && !options.isTLS) {
        snprintf(absolute, sizeof absolute, "http://%s:%d", name, options.port);
    }
    if (options.bodyBytes > 0) snprintf(length, sizeof length, "Content-Length: %ld\r\n", options.bodyBytes);
    int written = snprintf(
        connection->request, sizeof connection->request,
        "%s %s%s HTTP/1.1\r\nHost: %s:%d\r\nUser-Agent: load/1\r\nAccept: */*\r\n%s\r\n", options.method, absolute,
        options.path, name, options.port, length);
    if (written < 0 || (size_t)written >= sizeof connection->request) die("the request is too long");
    connection->requestLength = (size_t)written;
}

static void await(struct connection *connection, bool forRoom) {
    if (connection->waitsForRoom == forRoom) return;
    connection->waitsForRoom = forRoom;
    struct epoll_event event = {.events = EPOLLIN | (forRoom ? EPOLLOUT : 0u), .data.ptr = connection};
    epoll_ctl(poller, EPOLL_CTL_MOD, connection->socket, &event);
}

static void open_again(struct connection *connection) { connection_open((int)(connection - connections)); }

static void shut(struct connection *connection) {
    if (connection->tls) {
        if (SSL_is_init_finished(connection->tls)) SSL_shutdown(connection->tls);
        ERR_clear_error();
        SSL_free(connection->tls);
        connection->tls = NULL;
    }
    if (connection->socket >= 0) close(connection->socket);
    connection->socket = -1;
    connection->state = closed;
}

static void note(const char *text) {
    if (firstError[0]) return;
    unsigned long error = ERR_peek_error();
    const char *reason = error ? ERR_reason_error_string(error) : NULL;
    snprintf(firstError, sizeof firstError, "%s%s%.80s", text, reason ? ": " : "", reason ? reason : "");
    for (char *byte = firstError; *byte; byte++) {
        if (*byte == '"' || *byte == '\\' || *byte < ' ') *byte = '\'';
    }
}

static enum progress fail(struct connection *connection, const char *format, ...) {
    char text[120];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    note(text);
    ERR_clear_error();
    counts.failed++;
    shut(connection);
    if (++failuresInARow > mostFailuresInARow) isStopping = true;
    if (!isStopping) open_again(connection);
    return ended;
}

// A server may close an idle connection just when a request is sent; that is not a failure (RFC 9112 §9.5).
static enum progress replace(struct connection *connection) {
    shut(connection);
    if (!isStopping) open_again(connection);
    return ended;
}

void connection_open(int index) {
    struct connection *connection = &connections[index];
    connection->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connection->socket < 0) die("socket: %s", strerror(errno));
    int on = 1;
    setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (options.hosts > 0) connection->host = lastHost++ % options.hosts + 1;
    write_request(connection);
    connection->isReused = false;
    connection->waitsForRoom = true;
    connection->state = connecting;
    connection->headLength = connection->written = 0;
    connection->bodyWritten = 0;
    connection->began = monotonic_nanoseconds();
    counts.opened++;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = connection};
    epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &event);
    if (connect(connection->socket, (struct sockaddr *)&options.address, sizeof options.address) < 0 &&
        errno != EINPROGRESS) {
        die("connect: %s", strerror(errno));
    }
}

// MARK: Bytes

// Returns the number of bytes read, 0 at the end, `again` or `broken`.
static ssize_t read_some(struct connection *connection, void *bytes, size_t size) {
    if (!connection->tls) {
        ssize_t length = read(connection->socket, bytes, size);
        if (length >= 0) return length;
        return errno == EAGAIN ? again : errno == ECONNRESET ? 0 : broken;
    }
    int length = SSL_read(connection->tls, bytes, (int)size);
    if (length > 0) return length;
    switch (SSL_get_error(connection->tls, length)) {
    case SSL_ERROR_WANT_READ: return again;
    case SSL_ERROR_WANT_WRITE: await(connection, true); return again;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_SYSCALL: return ERR_peek_error() ? broken : 0;
    default: break;
    }
    if (ERR_GET_REASON(ERR_peek_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING) return broken;
    ERR_clear_error();
    return 0;
}

static ssize_t write_some(struct connection *connection, const void *bytes, size_t size) {
    if (!connection->tls) {
        ssize_t length = send(connection->socket, bytes, size, MSG_NOSIGNAL);
        if (length >= 0) return length;
        if (errno != EAGAIN) return broken;
        await(connection, true);
        return again;
    }
    int length = SSL_write(connection->tls, bytes, (int)size);
    if (length > 0) return length;
    int error = SSL_get_error(connection->tls, length);
    if (error == SSL_ERROR_WANT_WRITE) await(connection, true);
    return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ ? again : broken;
}

// MARK: Connecting to the origin

static enum progress finish_connecting(struct connection *connection) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(connection->socket, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) return fail(connection, "connect: %s", strerror(error));
    connection->state = !options.isTLS ? writing : options.throughProxy ? askingForTunnel : handshaking;
    return advanced;
}

static enum progress ask_for_tunnel(struct connection *connection) {
    char name[256], request[700];
    host_name(connection, name, sizeof name);
    int length = snprintf(
        request, sizeof request, "CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n", name, options.port, name,
        options.port);
    if (send(connection->socket, request, (size_t)length, MSG_NOSIGNAL) != length) {
        return fail(connection, "CONNECT: %s", strerror(errno));
    }
    await(connection, false);
    connection->state = readingTunnel;
    return blocked;
}

// The proxy sends nothing between its 200 and the ClientHello, so all bytes received belong to the head.
static enum progress read_tunnel(struct connection *connection) {
    size_t room = sizeof connection->head - 1 - connection->headLength;
    ssize_t length = read(connection->socket, connection->head + connection->headLength, room);
    if (length < 0 && errno == EAGAIN) return blocked;
    if (length <= 0) return fail(connection, "CONNECT: closed");
    connection->headLength += (size_t)length;
    connection->head[connection->headLength] = 0;
    if (!strstr(connection->head, "\r\n\r\n")) return blocked;
    if (strncmp(connection->head + 8, " 200", 4) != 0) return fail(connection, "CONNECT: %.40s", connection->head);
    connection->state = handshaking;
    return advanced;
}

static void begin_handshake(struct connection *connection) {
    char name[256];
    host_name(connection, name, sizeof name);
    connection->tls = SSL_new(context);
    if (!connection->tls) die("no memory for TLS");
    SSL_set_fd(connection->tls, connection->socket);
    SSL_set_tlsext_host_name(connection->tls, name);
    if (options.anchors) SSL_set1_host(connection->tls, name);
    SSL_set_connect_state(connection->tls);
}

static void look_at_issuer(const struct connection *connection) {
    X509 *certificate = SSL_get1_peer_certificate(connection->tls);
    if (!certificate) return;
    X509_NAME_get_text_by_NID(X509_get_issuer_name(certificate), NID_commonName, issuer, sizeof issuer);
    EVP_PKEY *key = X509_get0_pubkey(certificate);
    snprintf(
        protocol, sizeof protocol, "%s %s %s-%d", SSL_get_version(connection->tls), SSL_get_cipher(connection->tls),
        OBJ_nid2sn(EVP_PKEY_base_id(key)), EVP_PKEY_bits(key));
    X509_free(certificate);
    if (options.issuer && !strstr(issuer, options.issuer)) {
        die("issued by '%s', expected '%s'", issuer, options.issuer);
    }
}

static enum progress handshake(struct connection *connection) {
    if (!connection->tls) begin_handshake(connection);
    ERR_clear_error();
    int result = SSL_do_handshake(connection->tls);
    if (result != 1) {
        int error = SSL_get_error(connection->tls, result);
        await(connection, error == SSL_ERROR_WANT_WRITE);
        if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return blocked;
        return fail(connection, "TLS handshake");
    }
    counts.handshakes++;
    if (!issuer[0]) look_at_issuer(connection);
    connection->state = writing;
    return advanced;
}

// MARK: Request and response

static enum progress write_all(struct connection *connection) {
    while (connection->written < connection->requestLength) {
        ssize_t length = write_some(
            connection, connection->request + connection->written, connection->requestLength - connection->written);
        if (length == again) return blocked;
        if (length < 0) return connection->isReused ? replace(connection) : fail(connection, "write");
        connection->written += (size_t)length;
    }
    while (connection->bodyWritten < options.bodyBytes) {
        size_t left = (size_t)(options.bodyBytes - connection->bodyWritten);
        ssize_t length = write_some(connection, uploaded, left < sizeof uploaded ? left : sizeof uploaded);
        if (length == again) return blocked;
        if (length < 0) return fail(connection, "write of the body");
        connection->bodyWritten += length;
        if (isMeasuring) counts.bytes += (uint64_t)length;
    }
    await(connection, false);
    connection->state = readingHead;
    connection->headLength = 0;
    return blocked;
}

static void begin_request(struct connection *connection, uint64_t now) {
    connection->began = now;
    connection->written = 0;
    connection->bodyWritten = 0;
    connection->state = writing;
}

static enum progress finish(struct connection *connection) {
    uint64_t now = monotonic_nanoseconds();
    failuresInARow = 0;
    connection->answers++;
    if (connection->answers == 1) counts.answeredOnce++;
    if (connection->answers == 2) counts.answeredTwice++;
    int status = atoi(connection->head + 9);
    if (status != 200) {
        counts.refused++;
        char text[48];
        snprintf(text, sizeof text, "status %d", status);
        note(text);
    } else if (options.expectedBytes >= 0 && connection->got != options.expectedBytes) {
        return fail(connection, "%ld bytes of body, expected %ld", connection->got, options.expectedBytes);
    } else if (isMeasuring) {
        counts.answered++;
        histogram_record((now - connection->began) / 1000);
        if (options.requests > 0 && counts.answered >= (uint64_t)options.requests) isStopping = true;
    }
    if (options.closesEach || connection->closesAfter) return replace(connection);
    connection->isReused = true;
    if (isHolding) {
        connection->state = idle;
        counts.idle++;
        return blocked;
    }
    begin_request(connection, now);
    return advanced;
}

static enum progress take_body(struct connection *connection, long length) {
    if (!connection->untilEnd && length > connection->left) return fail(connection, "bytes after the response");
    connection->got += length;
    connection->left -= length;
    if (isMeasuring) counts.bytes += (uint64_t)length;
    return connection->left == 0 && !connection->untilEnd ? finish(connection) : advanced;
}

// The value of a header field, or NULL.
static const char *field(const char *head, const char *name) {
    size_t length = strlen(name);
    for (const char *line = strchr(head, '\n'); line; line = strchr(line, '\n')) {
        line++;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            return line + length + 1 + strspn(line + length + 1, " ");
        }
    }
    return NULL;
}

static enum progress read_head(struct connection *connection) {
    size_t room = sizeof connection->head - 1 - connection->headLength;
    if (room == 0) return fail(connection, "the head is longer than %zu bytes", sizeof connection->head);
    ssize_t length = read_some(connection, connection->head + connection->headLength, room);
    if (length == again) return blocked;
    if (length <= 0 && connection->isReused && connection->headLength == 0) return replace(connection);
    if (length <= 0) return fail(connection, "closed before the response");
    connection->headLength += (size_t)length;
    connection->head[connection->headLength] = 0;
    char *end = strstr(connection->head, "\r\n\r\n");
    if (!end) return advanced;
    long after = connection->head + connection->headLength - (end + 4);
    end[2] = 0;
    const char *declared = field(connection->head, "Content-Length"), *kept = field(connection->head, "Connection");
    connection->left = declared ? atol(declared) : 0;
    connection->untilEnd = !declared;
    connection->closesAfter = !declared || (kept && strncasecmp(kept, "close", 5) == 0) ||
        (strncmp(connection->head, "HTTP/1.0", 8) == 0 && !(kept && strncasecmp(kept, "keep-alive", 10) == 0));
    connection->got = 0;
    connection->state = readingBody;
    return take_body(connection, after);
}

static enum progress read_body(struct connection *connection) {
    ssize_t length = read_some(connection, received, sizeof received);
    if (length == again) return blocked;
    if (length == 0 && connection->untilEnd) return finish(connection);
    if (length <= 0) return fail(connection, "closed after %ld bytes of body", connection->got);
    return take_body(connection, length);
}

static enum progress watch_idle(struct connection *connection) {
    ssize_t length = read_some(connection, received, sizeof received);
    if (length == again || length > 0) return blocked;
    counts.idle--;
    return fail(connection, "closed while idle");
}

static enum progress step(struct connection *connection) {
    switch (connection->state) {
    case closed: return ended;
    case connecting: return finish_connecting(connection);
    case askingForTunnel: return ask_for_tunnel(connection);
    case readingTunnel: return read_tunnel(connection);
    case handshaking: return handshake(connection);
    case writing: return write_all(connection);
    case readingHead: return read_head(connection);
    case readingBody: return read_body(connection);
    case idle: return watch_idle(connection);
    }
    return ended;
}

void connections_release(void) {
    isHolding = false;
    for (int index = 0; index < options.connections; index++) {
        if (connections[index].state != idle) continue;
        counts.idle--;
        begin_request(&connections[index], monotonic_nanoseconds());
        connection_ready(&connections[index]);
    }
}

// Whether there is work that epoll does not report: a request to write, or data buffered in OpenSSL.
static bool must_go_on(const struct connection *connection) {
    return connection->state == writing || (connection->tls && SSL_has_pending(connection->tls));
}

// At most `stepsPerTurn` steps, for fairness, unless epoll would not report the remaining work.
void connection_ready(struct connection *connection) {
    if (connection->state == closed) return;
    for (int steps = 0; !isStopping; steps++) {
        if (steps >= stepsPerTurn && !must_go_on(connection)) return;
        if (step(connection) != advanced) return;
    }
}
