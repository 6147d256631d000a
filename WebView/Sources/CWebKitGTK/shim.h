// SPDX-License-Identifier: Apache-2.0

// What Swift cannot import from GTK and WebKitGTK: functions with variable arguments, and macros that cast.

#ifndef COUNTERSIGN_CWEBKITGTK_SHIM_H
#define COUNTERSIGN_CWEBKITGTK_SHIM_H

#include <gio/gio.h>
#include <glib-unix.h>
#include <gtk/gtk.h>
#include <libsoup/soup.h>
#include <sys/prctl.h>
#include <webkit/webkit.h>

static inline gulong csn_connect(gpointer object, const char *signal, GCallback callback, gpointer data) {
    return g_signal_connect_data(object, signal, callback, data, NULL, (GConnectFlags)0);
}

// `content_security_policy` applies to every document, as if its response had it as a field.
static inline WebKitWebView *csn_web_view_new(WebKitNetworkSession *session, WebKitUserContentManager *content,
                                              WebKitSettings *settings, const char *content_security_policy) {
    return (WebKitWebView *)g_object_new(WEBKIT_TYPE_WEB_VIEW, "network-session", session, "user-content-manager",
                                         content, "settings", settings, "default-content-security-policy",
                                         content_security_policy, NULL);
}

static inline GtkWidget *csn_widget(gpointer object) { return GTK_WIDGET(object); }
static inline GtkWindow *csn_window(gpointer object) { return GTK_WINDOW(object); }
static inline GtkBox *csn_box(gpointer object) { return GTK_BOX(object); }
static inline GtkLabel *csn_label(gpointer object) { return GTK_LABEL(object); }

static inline WebKitNavigationAction *csn_navigation_action(WebKitPolicyDecision *decision) {
    return webkit_navigation_policy_decision_get_navigation_action(WEBKIT_NAVIGATION_POLICY_DECISION(decision));
}

static inline WebKitURIResponse *csn_response(WebKitPolicyDecision *decision) {
    return webkit_response_policy_decision_get_response(WEBKIT_RESPONSE_POLICY_DECISION(decision));
}

static inline gboolean csn_is_type_supported(WebKitPolicyDecision *decision) {
    return webkit_response_policy_decision_is_mime_type_supported(WEBKIT_RESPONSE_POLICY_DECISION(decision));
}

static inline gboolean csn_is_main_response(WebKitPolicyDecision *decision) {
    return webkit_response_policy_decision_is_main_frame_main_resource(WEBKIT_RESPONSE_POLICY_DECISION(decision));
}

// Signal `number` when the parent thread ends.
static inline int csn_set_parent_death_signal(int number) { return prctl(PR_SET_PDEATHSIG, number, 0, 0, 0); }

static inline WebKitPermissionRequest *csn_permission_request(gpointer object) {
    return WEBKIT_PERMISSION_REQUEST(object);
}

#endif
