#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a proxy on a machine with two networks, corp (10.99.1.0/24) and home (10.99.2.0/24), in each of which there is a
# parent proxy at .2 that responds with its network's name; that of corp holds requests for /held. Each step prints a
# line.
#
#   networks.sh EXECUTABLE FOLDER PARENTS    PARENTS is the value of --parent
#
# It runs as root of a user namespace of its own (unshare -rn). Ends everything that it has started.
set -euo pipefail
executable=$1 folder=$2 parents=$3
started=()
trap 'kill "${started[@]}" 2>/dev/null || true' EXIT

parent='
import http.server, pathlib, sys, time
class Parent(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path.endswith("/held") and sys.argv[1] == "corp":
            pathlib.Path(sys.argv[3], "held").touch()
            time.sleep(60)
        body = sys.argv[1].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer((sys.argv[2], 8080), Parent).serve_forever()
'

connect() { # NAME NUMBER PID: one end of the cable is here, the other in the namespace of the process
    ip link add "$1" type veth peer name end netns "$3"
    ip addr add "10.99.$2.1/24" dev "$1"
    ip link set "$1" up
    ip route add default via "10.99.$2.2" metric "$2"
    nsenter -t "$3" -n sh -c "ip link set lo up; ip addr add 10.99.$2.2/24 dev end; ip link set end up"
}

network() { # NAME NUMBER: sets `pid` to a process in the new namespace
    unshare -n sleep 300 &
    pid=$!
    started+=("$pid")
    until [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
    connect "$1" "$2" "$pid"
    nsenter -t "$pid" -n python3 -c "$parent" "$1" "10.99.$2.2" "$folder" &
    started+=("$!")
    until curl -s -o "$folder/ready" "http://10.99.$2.2:8080/"; do sleep 0.02; done
}

# The first parent that is reached within 20 seconds, if it is the expected one.
fetch() {
    local deadline=$((SECONDS + 20)) found=
    while [ $SECONDS -lt $deadline ]; do
        found=$(curl -s -m 20 -x "http://$address" http://www.corp.invalid/)
        if [ "$found" = "$1" ]; then break; fi
    done
    echo "$found"
}

ip link set lo up
network corp 1
corp=$pid
network home 2
"$executable" serve --home "$folder/home" --listen 127.0.0.1:0 --parent "$parents" >"$folder/serve.log" 2>&1 &
server=$!
started+=("$server")
until address=$(sed -n 's/^countersign: listening on //p' "$folder/serve.log") && [ -n "$address" ]; do
    kill -0 "$server"
    sleep 0.02
done

echo "at work: $(fetch corp)"
curl -s -m 30 -o "$folder/response" -x "http://$address" http://www.corp.invalid/held &
request=$!
until [ -e "$folder/held" ]; do sleep 0.02; done
ip link del corp
echo "at home: $(fetch home)"
wait "$request"
echo "the request in between: $(<"$folder/response")"
echo "connections to corp: $(ss -Htn state established dst 10.99.1.2 | wc -l)"
connect corp 1 "$corp"
echo "at work again: $(fetch corp)"
kill -0 "$server" && echo "the same process"
