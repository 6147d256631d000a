// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Testing

/// An upgraded connection carries bytes both ways after each kind of authentication.
@Suite(.waiting) struct WebSocketTests {
    enum Way: String, CaseIterable, Sendable { case certificate, basic, plain, tunnel, open }

    @Test(arguments: Way.allCases)
    func webSocketEchoes(_ way: Way) throws {
        let setting = try Setting.shared
        let (nginx, apache) = (setting.origins.nginx, setting.origins.apache)
        let url =
            switch way {
            case .certificate: "wss://cert12.test.localhost:\(nginx.mutual12Port)/websocket"
            case .basic: "wss://basic.test.localhost:\(apache.httpsPort)/basic/websocket"
            // Python's library sends it in a CONNECT, as browsers do.
            case .plain: "ws://basic.test.localhost:\(apache.httpPort)/basic/websocket"
            case .tunnel: "wss://unlisted.test.localhost:\(nginx.httpsPort)/websocket"
            case .open: "wss://open.test.localhost:\(nginx.httpsPort)/websocket"
            }
        let anchors = way == .tunnel ? try TestPKI.shared.originAnchor : setting.proxy.anchor
        let done = try Command.run(
            Tool.python(), [Tool.server("websocket_client.py"), url, setting.proxy.url, anchors], in: TemporaryFolder())
        #expect(done.status == 0 && done.output == "ok 4\n", "\(done.said)")
    }
}
