// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import WebViewProtocol

/// Carries messages between pages and the caller.
///
/// WebKit does not say which frame posted a message. Its handler is therefore registered in a script world that pages
/// cannot reach, in which a script of ours adds the origin. In the page's world stands an object with the same name,
/// in the main frame of permitted origins only, and both exchange texts by DOM events.
final class MessageBridge {
    let contentManager = webkit_user_content_manager_new()
    private let policy: PageMessagePolicy?
    /// It runs until the process ends.
    private unowned let program: Program
    private var replies: [Int: Reply] = [:]
    private var lastID = 0

    private struct Reply {
        /// Owned.
        let pointer: OpaquePointer?
        /// The message, owned. It has the context in which the answer is made.
        let message: OpaquePointer?

        func answer(_ text: String) {
            let value = jsc_value_new_string(jsc_value_get_context(message), text)
            webkit_script_message_reply_return_value(pointer, value)
            g_object_unref(gpointer(value))
            webkit_script_message_reply_unref(pointer)
            g_object_unref(gpointer(message))
        }
    }

    init(_ policy: PageMessagePolicy?, program: Program) {
        self.policy = policy
        self.program = program
        guard let policy else { return }
        connect(gpointer(contentManager), "script-message-with-reply-received::callback", to: self, Self.received)
        webkit_user_content_manager_register_script_message_handler_with_reply(
            contentManager, "callback", BridgeScripts.world)
        let scripts = BridgeScripts(origins: policy.origins)
        add(
            webkit_user_script_new(
                scripts.page, WEBKIT_USER_CONTENT_INJECT_TOP_FRAME, WEBKIT_USER_SCRIPT_INJECT_AT_DOCUMENT_START, nil,
                nil))
        add(
            webkit_user_script_new_for_world(
                scripts.bridge, WEBKIT_USER_CONTENT_INJECT_TOP_FRAME, WEBKIT_USER_SCRIPT_INJECT_AT_DOCUMENT_START,
                BridgeScripts.world, nil, nil))
    }

    /// - Throws: `ProtocolError` if no message had this id. An answer to a page that is gone is ignored.
    func answer(id: Int, _ text: String) throws(ProtocolError) {
        guard (1...max(1, lastID)).contains(id), lastID > 0 else { throw ProtocolError("no message has this 'id'") }
        replies.removeValue(forKey: id)?.answer(text)
    }

    /// The page is gone, and with it the messages that wait.
    func forget() {
        guard !replies.isEmpty else { return }
        let waiting = replies
        replies = [:]
        for reply in waiting.values { reply.answer("null") }
        program.report(.pageMessagesGone)
    }

    private func add(_ script: OpaquePointer?) {
        webkit_user_content_manager_add_script(contentManager, script)
        webkit_user_script_unref(script)
    }

    private func received(_ message: OpaquePointer?, _ pointer: OpaquePointer?) {
        let reply = Reply(
            pointer: webkit_script_message_reply_ref(pointer),
            message: g_object_ref(gpointer(message)).map { OpaquePointer($0) })
        guard let policy, let text = jsc_value_to_string(message) else { return reply.answer("null") }
        defer { g_free(text) }
        switch policy.decide(String(cString: text), waiting: replies.count) {
        case .answer(let answer): reply.answer(answer)
        case .deliver(let origin, let body):
            lastID += 1
            replies[lastID] = reply
            program.report(.pageMessage(id: lastID, origin: origin, body: body))
        }
    }

    private static let received: @convention(c) (gpointer?, OpaquePointer?, OpaquePointer?, gpointer?) -> gboolean = {
        _, message, reply, data in
        guard let data else { return 0 }
        Unmanaged<MessageBridge>.fromOpaque(data).takeUnretainedValue().received(message, reply)
        return 1
    }
}
