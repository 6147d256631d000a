// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import WebViewProtocol

/// The window with the sign-in page. Above the page it shows the page's origin, which the page cannot change.
final class SignInWindow {
    let signIn: SignIn
    /// It runs until the process ends.
    unowned let program: Program
    let session: NetworkSession
    let view: UnsafeMutablePointer<WebKitWebView>?
    let bridge: MessageBridge
    var progress = LoadProgress()
    /// Whether the first request of the load in progress has fields of its own.
    var hasHeaders = false
    private let window: UnsafeMutablePointer<GtkWindow>?
    private let originLabel: OpaquePointer?
    let notice = NoticeBar()
    /// The last page that was asked for by another method than GET, and so cannot be asked for again.
    var postedURL = ""
    /// The configuration profiles of the window.
    private(set) lazy var profiles = ProfileDownloads(of: self)
    private var reportedCookies: [Cookie]?
    /// Whether to report the session when a response has arrived.
    private var isSessionAwaited = false
    /// How many times cookies are being stored, and the page that is loaded when they are.
    private var storing = 0
    private var nextPage: PageRequest?

    init(_ signIn: SignIn, program: Program) {
        self.signIn = signIn
        self.program = program
        session = NetworkSession(signIn)
        bridge = MessageBridge(signIn.pageMessages, program: program)
        view = csn_web_view_new(
            session.pointer, bridge.contentManager,
            ViewSettings.make(userAgent: signIn.userAgent, announcesDevice: signIn.announcesDevice),
            signIn.policy.contentSecurityPolicy)
        window = csn_window(gtk_window_new())
        let label = gtk_label_new("")
        originLabel = csn_label(label)
        gtk_window_set_title(window, signIn.title)
        gtk_window_set_default_size(window, 520, 720)
        let box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0)
        gtk_widget_set_margin_top(label, 6)
        gtk_widget_set_margin_bottom(label, 6)
        gtk_label_set_ellipsize(originLabel, PANGO_ELLIPSIZE_START)
        gtk_box_append(csn_box(box), label)
        gtk_box_append(csn_box(box), notice.widget)
        gtk_widget_set_vexpand(csn_widget(view), 1)
        gtk_box_append(csn_box(box), csn_widget(view))
        gtk_window_set_child(window, box)
        connectSignals()
        connect(window, "close-request", to: self, Self.windowClosed)
        connect(notice.button, "clicked", to: self, Self.retryClicked)
    }

    /// Stores the cookies, then loads the first page.
    func start() {
        gtk_window_present(window)
        session.cookies.add(signIn.cookies) { [self] isDone in
            guard isDone else {
                return program.fail(.cookies, "cannot store the session's cookies", remedy: "sign in without them")
            }
            load(signIn.first)
        }
    }

    func load(_ page: PageRequest) {
        guard storing == 0 else {
            nextPage = page
            return
        }
        hasHeaders = !page.headers.isEmpty
        guard hasHeaders else {
            return webkit_web_view_load_uri(view, page.url)
        }
        let request = webkit_uri_request_new(page.url)
        let headers = webkit_uri_request_get_http_headers(request)
        for (name, value) in page.headers { soup_message_headers_replace(headers, name, value) }
        webkit_web_view_load_request(view, request)
        g_object_unref(gpointer(request))
    }

    func answer(id: Int, _ answer: String) throws(ProtocolError) {
        try bridge.answer(id: id, answer)
    }

    func hide() {
        gtk_widget_set_visible(csn_widget(window), 0)
    }

    func showOrigin(_ text: String) {
        let origin = PageURL(text).flatMap(Origin.init)
        gtk_label_set_text(originLabel, origin?.description ?? "")
    }

    /// Shows a sentence above the page until the next one loads, or nothing if it is empty.
    func showMessage(_ sentence: String) { notice.show(sentence) }

    /// Shows why a page is not there, with a button to load it again.
    func showFailure(_ url: String, _ reason: String) {
        let host = PageURL(url)?.host.map { " of \($0)" } ?? ""
        let isRepeatable = url != postedURL && signIn.policy.decide(url) == .allow
        notice.show("The page\(host) could not be loaded: \(reason)", retrying: isRepeatable ? url : signIn.first.url)
    }

    /// Reports the selected cookies if they are not those that were reported last.
    func captureCookies(always: Bool = false, done: @escaping () -> Void = {}) {
        guard let selection = signIn.captureCookies else { return done() }
        session.cookies.all { [self] cookies in
            let selected = selection.select(cookies)
            if always || selected != reportedCookies ?? [] { program.report(.cookies(selected)) }
            reportedCookies = selected
            done()
        }
    }

    /// Writes the visible part of the page as PNG.
    func snapshot(file: String) {
        webkit_web_view_get_snapshot(
            view, WEBKIT_SNAPSHOT_REGION_VISIBLE, WEBKIT_SNAPSHOT_OPTIONS_NONE, nil,
            { view, result, data in
                let texture = webkit_web_view_get_snapshot_finish(
                    view.map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: WebKitWebView.self) }, result, nil)
                Callback<OpaquePointer?>.take(data)(texture)
            },
            Callback<OpaquePointer?> { [program] texture in
                guard let texture else { return program.report(.snapshot(file: "")) }
                gdk_texture_save_to_png(texture, file)
                g_object_unref(gpointer(texture))
                program.report(.snapshot(file: file))
            }.retained())
    }

    /// The hosts whose pages the window may show.
    var hosts: [String] { signIn.policy.allowedOrigins.map(\.host) }

    /// Reports the session with the cookies of a response that is on its way, which asks for a second window.
    func reportSessionWithResponse() {
        guard progress.awaitsResponse else { return reportSession() }
        isSessionAwaited = true
        // It may have arrived already, and the one to another request is awaited.
        after(.seconds(2)) { [weak self] in self?.reportAwaitedSession() }
    }

    /// A response has arrived, or none will.
    func reportAwaitedSession() {
        guard isSessionAwaited else { return }
        isSessionAwaited = false
        reportSession()
    }

    func reportSession(done: @escaping () -> Void = {}) {
        session.cookies.all { [self] cookies in
            let (selected, omitted) = SessionCookies.select(cookies, for: hosts)
            program.report(.session(selected, omitted: omitted))
            done()
        }
    }

    /// Stores cookies. Pages that are loaded meanwhile wait.
    func add(_ cookies: [Cookie]) {
        storing += 1
        session.cookies.add(cookies) { [self] isDone in
            storing -= 1
            guard isDone else {
                return program.fail(.cookies, "cannot store the session's cookies", remedy: "sign in again")
            }
            guard storing == 0, let page = nextPage else { return }
            nextPage = nil
            load(page)
        }
    }

    private static let windowClosed: @convention(c) (gpointer?, gpointer?) -> gboolean = { _, data in
        SignInWindow.from(data).program.end(.window)
        return 1
    }

    private static let retryClicked: @convention(c) (gpointer?, gpointer?) -> Void = { _, data in
        let window = SignInWindow.from(data)
        guard let url = window.notice.retried else { return }
        // The fields of the first request belong to it each time.
        window.load(url == window.signIn.first.url ? window.signIn.first : PageRequest(url: url))
    }

    static func from(_ data: gpointer?) -> SignInWindow {
        // GTK passes the data of the signal's connection.
        guard let data else { preconditionFailure("a signal without its data") }
        return Unmanaged<SignInWindow>.fromOpaque(data).takeUnretainedValue()
    }
}
