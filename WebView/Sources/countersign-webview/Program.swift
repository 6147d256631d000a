// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import Glibc
import WebViewProtocol

/// Reads commands and owns the window. Everything happens on the main thread, in GLib's main loop, where Swift's main
/// actor does not run.
final class Program {
    private let events: EventWriter
    private let options: Options
    private let loop = g_main_loop_new(nil, 0)
    private var splitter = LineSplitter()
    private var window: SignInWindow?
    private var isEnding = false
    private var exitStatus: Int32 = 0

    init(events: EventWriter, options: Options) {
        self.events = events
        self.options = options
    }

    /// Returns the exit status.
    func run() -> Int32 {
        let condition = GIOCondition(rawValue: G_IO_IN.rawValue | G_IO_HUP.rawValue | G_IO_ERR.rawValue)
        g_unix_fd_add(
            0, condition, { _, _, data in Unmanaged<Program>.fromOpaque(data!).takeUnretainedValue().readInput() },
            Unmanaged.passUnretained(self).toOpaque())
        report(.ready(protocolVersion: Event.protocolVersion, webKit: Installation.webKitVersion))
        g_main_loop_run(loop)
        return exitStatus
    }

    func report(_ event: Event) {
        if !events.write(event) { quit(status: 1) }
    }

    /// Reports the cookies once more, except after a cancellation, and ends the program.
    func end(_ reason: ClosedReason) {
        guard !isEnding else { return }
        isEnding = true
        guard let window, reason != .cancel else { return closed(reason) }
        window.hide()
        window.captureCookies(always: true) { [self] in
            guard window.signIn.reportsSession else { return closed(reason) }
            window.reportSession { [self] in closed(reason) }
        }
        // WebKit's network process may be gone and never answer.
        after(.seconds(5)) { [self] in closed(reason) }
    }

    func fail(_ code: FailureCode, _ sentence: String, remedy: String) {
        guard exitStatus == 0 else { return }
        isEnding = true
        report(.failed(code: code, sentence: sentence, remedy: remedy))
        quit(status: 1)
    }

    private func closed(_ reason: ClosedReason) {
        report(.closed(reason))
        quit(status: 0)
    }

    private func quit(status: Int32) {
        exitStatus = status
        // The end of the process ends WebKit's processes. Nothing that waits can follow the last event.
        exit(status)
    }

    // MARK: Commands

    /// Returns whether there is more to read.
    private func readInput() -> gboolean {
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        let count = read(0, &buffer, buffer.count)
        if count < 0 && (errno == EINTR || errno == EAGAIN) { return 1 }
        guard count > 0 else {
            end(.inputEnded)
            return 0
        }
        do throws(ProtocolError) {
            for line in try splitter.split(buffer[..<count]) where !isEnding { try perform(Command(line: line)) }
        } catch {
            fail(.protocolError, error.description, remedy: "see Documentation/EmbeddedAgent.md")
        }
        return 1
    }

    private func perform(_ command: Command) throws(ProtocolError) {
        switch command {
        case .open(let request):
            guard window == nil else { throw ProtocolError("'open' came twice") }
            open(try SignIn(request, permitsLoopbackHTTP: options.permitsLoopbackHTTP))
        case .load(let request):
            let window = try opened()
            try request.check(window.signIn.policy)
            window.load(request)
        case .answerMessage(let id, let answer):
            try PageMessagePolicy.checkAnswer(answer)
            try opened().answer(id: id, answer)
        case .reportSession: try opened().reportSessionWithResponse()
        case .addCookies(let cookies):
            let window = try opened()
            try SessionCookies.check(cookies, for: window.hosts)
            window.add(cookies)
        case .showMessage(let text):
            try opened().showMessage(String(text.prefix(Limits.messageCharacters)))
        case .cancel: end(.cancel)
        case .close: end(.close)
        case .snapshot(let file):
            guard options.isTest else { throw ProtocolError("'snapshot' needs --test") }
            try opened().snapshot(file: file)
        case .pressButton:
            guard options.isTest else { throw ProtocolError("'pressButton' needs --test") }
            try opened().notice.press()
        }
    }

    private func opened() throws(ProtocolError) -> SignInWindow {
        guard let window else { throw ProtocolError("'open' must come first") }
        return window
    }

    private func open(_ signIn: SignIn) {
        for folder in [signIn.dataFolder, signIn.profileFolder].compactMap(\.self) where !DataFolder.make(folder) {
            return fail(
                .dataFolder, "cannot use the folder '\(folder)', or other users can read it",
                remedy: "chmod 700 '\(folder)'")
        }
        let window = SignInWindow(signIn, program: self)
        self.window = window
        after(signIn.timeLimit) { [self] in end(.timeLimit) }
        window.start()
    }
}
