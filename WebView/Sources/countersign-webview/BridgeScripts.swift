// SPDX-License-Identifier: Apache-2.0

import WebViewProtocol

/// The two scripts of the message bridge. Both run before the page's own scripts.
struct BridgeScripts {
    static let world = "countersign"

    /// JavaScript: an array of strings. Origins have no character that needs escaping.
    private let origins: String

    init(origins: [Origin]) {
        self.origins = "[" + origins.map { "\"\($0)\"" }.joined(separator: ",") + "]"
    }

    /// `window.webkit.messageHandlers.callback.postMessage(body)` returns a promise of the answer, a JSON text.
    var page: String {
        """
        (() => {
            if (!\(origins).includes(location.origin)) return;
            const waiting = new Map();
            let last = 0;
            window.addEventListener("countersign-answer", event => {
                const { id, answer } = JSON.parse(event.detail);
                const resolve = waiting.get(id);
                waiting.delete(id);
                if (resolve) resolve(answer);
            });
            const postMessage = body => new Promise(resolve => {
                const text = typeof body === "string" ? body : JSON.stringify(body);
                last += 1;
                waiting.set(last, resolve);
                const detail = JSON.stringify({ id: last, body: String(text) });
                window.dispatchEvent(new CustomEvent("countersign-message", { detail }));
            });
            const callback = Object.freeze({ postMessage });
            const messageHandlers = Object.freeze({ callback });
            Object.defineProperty(window, "webkit", { value: Object.freeze({ messageHandlers }) });
        })();
        """
    }

    /// Adds the origin, which the page cannot change here.
    var bridge: String {
        """
        (() => {
            if (window.top !== window || !\(origins).includes(location.origin)) return;
            window.addEventListener("countersign-message", async event => {
                const { id, body } = JSON.parse(String(event.detail));
                const message = JSON.stringify({ origin: location.origin, body: String(body) });
                let answer = null;
                try {
                    answer = await window.webkit.messageHandlers.callback.postMessage(message);
                } catch (error) {}
                const detail = JSON.stringify({ id, answer });
                window.dispatchEvent(new CustomEvent("countersign-answer", { detail }));
            });
        })();
        """
    }
}
