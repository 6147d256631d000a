# SPDX-License-Identifier: Apache-2.0
"""A notification server (Desktop Notifications Specification 1.2) with a person at it.

Usage: notification_server.py LOG CAPABILITY...

Needs python3-dbus and python3-gi. Prints `ready`. Each call is one JSON object in the log. The interface
`test.Person` at the same object is the person:

    Press(number, key)     presses a button
    Dismiss(number)        closes a notification
    Forge(number, key)     another program sends the signal of a button to the client
"""

import json
import os
import sys

import dbus
import dbus.lowlevel
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = "org.freedesktop.Notifications"
PATH = "/org/freedesktop/Notifications"
PERSON = "test.Person"


class Server(dbus.service.Object):
    def __init__(self, log, capabilities):
        self.bus = dbus.SessionBus()
        self.name = dbus.service.BusName(NAME, self.bus, do_not_queue=True)
        super().__init__(self.bus, PATH)
        self.log = log
        self.capabilities = capabilities
        self.last = 0
        self.client = None

    def note(self, **call):
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(json.dumps(call) + "\n")

    @dbus.service.method(NAME, in_signature="", out_signature="as")
    def GetCapabilities(self):
        self.note(call="GetCapabilities")
        return dbus.Array(self.capabilities, signature="s")

    @dbus.service.method(NAME, in_signature="susssasa{sv}i", out_signature="u", sender_keyword="sender")
    def Notify(self, program, replaces, icon, summary, body, actions, hints, expires, sender=None):
        self.client = sender
        if not replaces:
            self.last += 1
        number = int(replaces) or self.last
        self.note(
            call="Notify", number=number, program=str(program), replaces=int(replaces), summary=str(summary),
            body=str(body), actions=[str(action) for action in actions], urgency=int(hints["urgency"]),
            urgencyType=type(hints["urgency"]).__name__, expires=int(expires))
        return dbus.UInt32(number)

    @dbus.service.method(NAME, in_signature="u", out_signature="")
    def CloseNotification(self, number):
        self.note(call="CloseNotification", number=int(number))
        self.NotificationClosed(number, dbus.UInt32(3))

    @dbus.service.signal(NAME, signature="uu")
    def NotificationClosed(self, number, reason):
        pass

    @dbus.service.signal(NAME, signature="us")
    def ActionInvoked(self, number, key):
        pass

    @dbus.service.method(PERSON, in_signature="us", out_signature="")
    def Press(self, number, key):
        self.ActionInvoked(number, key)

    @dbus.service.method(PERSON, in_signature="u", out_signature="")
    def Dismiss(self, number):
        self.NotificationClosed(number, dbus.UInt32(2))

    @dbus.service.method(PERSON, in_signature="us", out_signature="")
    def Forge(self, number, key):
        other = dbus.bus.BusConnection(os.environ["DBUS_SESSION_BUS_ADDRESS"])
        signal = dbus.lowlevel.SignalMessage(PATH, NAME, "ActionInvoked")
        signal.append(number, key, signature="us")
        signal.set_destination(self.client)
        other.send_message(signal)
        other.flush()
        self.note(call="Forge", number=int(number))


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
server = Server(sys.argv[1], sys.argv[2:])
print("ready", flush=True)
GLib.MainLoop().run()
