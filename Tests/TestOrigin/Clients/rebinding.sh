#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a proxy on a machine whose name server gives names of strangers addresses of that machine. A plain server listens
# on 127.0.0.1:8080 and ::1. Each step prints a line with the status, and with the content or the reason.
#
#   rebinding.sh EXECUTABLE FOLDER
#
# It runs as root of a user namespace of its own (unshare -rnm). Ends everything that it has started.
set -euo pipefail
executable=$1 folder=$2
started=()
trap 'kill "${started[@]}" 2>/dev/null || true' EXIT

# The first label of a name is its address, as in 127-0-0-1.evil.corp.invalid; `x` stands for colons.
names='
import socket, socketserver, struct
def address(label):
    label = label.replace("-", ".").replace("x", ":")
    if ":" in label: return 28, socket.inet_pton(socket.AF_INET6, label)
    return 1, socket.inet_aton(label)
class Names(socketserver.BaseRequestHandler):
    def handle(self):
        query, server = self.request
        labels, place = [], 12
        while query[place]:
            labels.append(query[place + 1:place + 1 + query[place]].decode().lower())
            place += 1 + query[place]
        kind = struct.unpack("!H", query[place + 1:place + 3])[0]
        answers = []
        if labels[1:2] == ["evil"]:
            for label in labels[0].split("and"):
                found = address(label)
                if found[0] == kind: answers.append(found)
        head = query[:2] + struct.pack("!HHHHH", 0x8180, 1, len(answers), 0, 0) + query[12:place + 5]
        for kind, bytes in answers: head += b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(bytes)) + bytes
        server.sendto(head, self.client_address)
socketserver.UDPServer(("127.0.0.1", 53), Names).serve_forever()
'
site='
import http.server, socket, sys
class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"secret")
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
Server((sys.argv[1], 8080), Site).serve_forever()
'

# The resolver asks for addresses of a family only if an interface has one (AI_ADDRCONFIG).
ip link set lo up
ip link add here type veth peer name there
ip addr add 10.99.3.1/24 dev here
ip addr add fd00:99::1/64 dev here nodad
ip link set here up
ip link set there up
printf 'nameserver 127.0.0.1\n' >"$folder/resolv.conf"
printf '127.0.0.1 localhost dev.corp.invalid\n' >"$folder/hosts"
printf 'hosts: files dns\n' >"$folder/nsswitch.conf"
for file in resolv.conf hosts nsswitch.conf; do mount --bind "$folder/$file" "/etc/$file"; done
python3 -c "$names" &
started+=("$!")
for address in 127.0.0.1 ::1; do
    python3 -c "$site" "$address" &
    started+=("$!")
done
for host in 127.0.0.1 '[::1]'; do
    until curl -s -o "$folder/ready" --noproxy '*' "http://$host:8080/"; do sleep 0.02; done
done

serve() { # NAME FLAG...: sets `address` to the proxy's
    local name=$1
    shift
    "$executable" serve --home "$folder/home" --listen 127.0.0.1:0 "$@" >"$folder/$name.log" 2>&1 &
    started+=("$!")
    until address=$(sed -n 's/^countersign: listening on //p' "$folder/$name.log") && [ -n "$address" ]; do
        kill -0 "$!"
        sleep 0.02
    done
}

fetch() { # HOST: the status and the content, plainly and through a tunnel
    local flag
    for flag in "" -p; do
        curl -s -m 30 $flag -x "http://$address" -o "$folder/content" -D "$folder/head" "http://$1:8080/" || true
        printf '%s%s: %s %s\n' "$1" "${flag:+ (tunnel)}" "$(sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p' "$folder/head")" \
            "$(grep -o 'secret\|destination_ip_prohibited' "$folder/content" "$folder/head" -h | head -n 1)"
        rm -f "$folder/content" "$folder/head"
    done
}

serve strict
for name in 127-0-0-1 0-0-0-0 169-254-169-254 xx1 xx xxffffx7f00x1 xxffffx127-0-0-1 127-0-0-1and192-0-2-1; do
    fetch "$name.evil.corp.invalid"
done
for name in 127.0.0.1 '[::1]' localhost a.localhost dev.corp.invalid; do fetch "$name"; done
serve permitting --allow-local
fetch 127-0-0-1.evil.corp.invalid
