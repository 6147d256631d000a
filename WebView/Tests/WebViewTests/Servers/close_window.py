# SPDX-License-Identifier: Apache-2.0
"""Closes the window with the title TITLE as a window manager does (ICCCM §4.2.8.1). Usage: close_window.py TITLE."""

import ctypes
import sys
import time

x11 = ctypes.CDLL("libX11.so.6")
Window = ctypes.c_ulong
x11.XOpenDisplay.restype = ctypes.c_void_p
x11.XDefaultRootWindow.restype = Window
x11.XInternAtom.restype = ctypes.c_ulong
for function in (x11.XDefaultRootWindow, x11.XCloseDisplay, x11.XFlush, x11.XSync):
    function.argtypes = [ctypes.c_void_p] + ([ctypes.c_int] if function is x11.XSync else [])
x11.XInternAtom.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
x11.XFetchName.argtypes = [ctypes.c_void_p, Window, ctypes.POINTER(ctypes.c_char_p)]
x11.XQueryTree.argtypes = [ctypes.c_void_p, Window, ctypes.POINTER(Window), ctypes.POINTER(Window),
                           ctypes.POINTER(ctypes.POINTER(Window)), ctypes.POINTER(ctypes.c_uint)]
x11.XSendEvent.argtypes = [ctypes.c_void_p, Window, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]


class ClientMessage(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int),
                ("display", ctypes.c_void_p), ("window", Window), ("message_type", ctypes.c_ulong),
                ("format", ctypes.c_int), ("data", ctypes.c_long * 5), ("padding", ctypes.c_long * 24)]


display = x11.XOpenDisplay(None)


def find(window, title):
    name = ctypes.c_char_p()
    if x11.XFetchName(display, window, ctypes.byref(name)) and name.value == title:
        return window
    root, parent, children, count = Window(), Window(), ctypes.POINTER(Window)(), ctypes.c_uint()
    x11.XQueryTree(display, window, ctypes.byref(root), ctypes.byref(parent), ctypes.byref(children),
                   ctypes.byref(count))
    return next((found for found in (find(child, title) for child in children[:count.value]) if found), None)


deadline = time.monotonic() + 60
while not (window := find(x11.XDefaultRootWindow(display), sys.argv[1].encode())):
    if time.monotonic() > deadline:
        sys.exit("no such window")
    time.sleep(0.1)
event = ClientMessage(type=33, window=window, format=32,
                      message_type=x11.XInternAtom(display, b"WM_PROTOCOLS", 0))
event.data[0] = x11.XInternAtom(display, b"WM_DELETE_WINDOW", 0)
x11.XSendEvent(display, window, 0, 0, ctypes.byref(event))
x11.XSync(display, 0)
