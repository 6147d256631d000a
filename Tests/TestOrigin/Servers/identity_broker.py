# SPDX-License-Identifier: Apache-2.0
"""A template of python-dbusmock: an identity broker on the session bus, with the interface of Microsoft's for Linux.

Usage: python3 -m dbusmock --session --template identity_broker.py --parameters '{"control": FILE, "log": FILE}'

Prints `ready`. The control file, which is read at each call, is a JSON object from a method's name to its reply:

    {"json": VALUE}             the value as text; "first": VALUE is another one for the first call
    {"text": TEXT}              the text
    {"error": [NAME, MESSAGE]}  a D-Bus error
    {"never": true}             no reply at all
    {"wait": true}              the reply that is there after the next change of the file

`@count` in a reply is replaced by how often the method was called. A method without an entry is unknown. Each call is
one JSON object in the log.
"""

import json

import dbus
from gi.repository import GLib

BUS_NAME = "com.microsoft.identity.broker1"
MAIN_OBJ = "/com/microsoft/identity/broker1"
MAIN_IFACE = "com.microsoft.identity.Broker1"
SYSTEM_BUS = False

files = {}
counts = {}


def load(mock, parameters):
    files.update({str(name): str(path) for name, path in parameters.items()})
    print("ready", flush=True)


def answer(method, version, correlation, request, reply, fail):
    counts[method] = counts.get(method, 0) + 1
    with open(files["log"], "a", encoding="utf-8") as log:
        log.write(json.dumps({
            "method": method, "version": str(version), "correlation": str(correlation),
            "request": json.loads(request),
        }) + "\n")
    respond(method, reply, fail)


def respond(method, reply, fail):
    with open(files["control"], encoding="utf-8") as control:
        wanted = json.load(control).get(method)
    if wanted is not None and wanted.get("wait"):
        GLib.timeout_add(10, respond, method, reply, fail)
        return
    if wanted is None:
        wanted = {"error": ["org.freedesktop.DBus.Error.UnknownMethod", f"no method {method}"]}
    if wanted.get("never"):
        return
    if "error" in wanted:
        name, message = wanted["error"]
        return fail(dbus.exceptions.DBusException(message, name=name))
    value = wanted["first"] if "first" in wanted and counts[method] == 1 else wanted.get("json")
    text = wanted["text"] if value is None else json.dumps(value)
    reply(text.replace("@count", str(counts[method])))


def method(name):
    def called(self, version, correlation, request, reply, fail):
        answer(name, version, correlation, request, reply, fail)

    called.__name__ = name
    return dbus.service.method(
        MAIN_IFACE, in_signature="sss", out_signature="s", async_callbacks=("reply", "fail"))(called)


getAccounts = method("getAccounts")
acquireTokenSilently = method("acquireTokenSilently")
acquireTokenInteractively = method("acquireTokenInteractively")
cancelInteractiveFlow = method("cancelInteractiveFlow")
acquirePrtSsoCookie = method("acquirePrtSsoCookie")
removeAccount = method("removeAccount")
getLinuxBrokerVersion = method("getLinuxBrokerVersion")
