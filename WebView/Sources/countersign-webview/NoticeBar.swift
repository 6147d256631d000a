// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK

/// A sentence above the page, and a button if it is about a page that can be loaded again.
final class NoticeBar {
    let widget: UnsafeMutablePointer<GtkWidget>?
    let button: UnsafeMutablePointer<GtkWidget>?
    /// The page that the button loads; nil without a button.
    private(set) var retried: String?
    private let label: OpaquePointer?

    init() {
        widget = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6)
        let text = gtk_label_new("")
        label = csn_label(text)
        gtk_label_set_wrap(label, 1)
        gtk_label_set_wrap_mode(label, PANGO_WRAP_WORD_CHAR)
        gtk_box_append(csn_box(widget), text)
        button = gtk_button_new_with_label("Try again")
        gtk_widget_set_halign(button, GTK_ALIGN_CENTER)
        gtk_box_append(csn_box(widget), button)
        for setMargin in [gtk_widget_set_margin_start, gtk_widget_set_margin_end, gtk_widget_set_margin_bottom] {
            setMargin(widget, 6)
        }
        gtk_widget_set_visible(widget, 0)
    }

    /// Shows nothing for an empty sentence.
    func show(_ sentence: String, retrying url: String? = nil) {
        retried = url
        gtk_label_set_text(label, sentence)
        gtk_widget_set_visible(button, url == nil ? 0 : 1)
        gtk_widget_set_visible(widget, sentence.isEmpty ? 0 : 1)
    }

    /// Does what a click does, if the button is shown.
    func press() {
        if retried != nil { gtk_widget_activate(button) }
    }
}
