// SPDX-License-Identifier: Apache-2.0

import CountersignEvents
import Testing

@testable import CountersignNotifications

@Suite struct DesktopNotificationTests {
    private static let all = ServerAbilities(hasActions: true, readsMarkup: true)

    @Test func aQuestionHasItsProgramSiteMethodAndCredential() {
        let notification = DesktopNotification(.made(3, waiting: 2), replacing: 7, for: Self.all)
        #expect(notification.summary == "Permit POST to https://git.corp.example:443?")
        #expect(
            notification.body == "/usr/bin/git wants to use the credential &quot;work&quot;. 2 requests wait.")
        #expect(
            notification.actions == [
                "allow-once", "Allow", "allow-client", "Allow for 15 minutes", "deny", "Deny",
            ])
        #expect(notification.replaces == 7 && notification.expiresMilliseconds == 41_000)
    }

    @Test func withoutButtonsTheBodyNamesTheCommand() {
        let notification = DesktopNotification(.made(3), replacing: 0, for: ServerAbilities())
        #expect(notification.actions.isEmpty)
        #expect(
            notification.body == """
                /usr/bin/git wants to use the credential "work". 1 request waits.
                Answer with: countersign approve 3
                """)
    }

    @Test(arguments: [
        ("/tmp/<b>a</b> & 'x' \"y\"", "/tmp/&lt;b&gt;a&lt;/b&gt; &amp; &#39;x&#39; &quot;y&quot; "),
        ("/tmp/a\nAllow\u{202E}", "/tmp/a\\u{A}Allow\\u{202E} "),
        ("process 4711", "process 4711 "),
    ])
    func aProgramCannotWriteMarkupOrLines(client: String, start: String) {
        let notification = DesktopNotification(.made(1, client: client), replacing: 0, for: Self.all)
        #expect(notification.body.hasPrefix(start))
        #expect(!notification.summary.contains("tmp"))
    }

    @Test func aLongPathKeepsItsEnds() {
        let path = "/begin/" + String(repeating: "x", count: 4000) + "/end"
        let text = QuestionText(.made(1, method: String(repeating: "M", count: 500), client: path))
        #expect(text.details.hasPrefix("/begin/") && text.details.contains("x/end wants"))
        #expect(text.details.count < 220 && text.title.count < 80)
    }

    @Test func aQuestionWhoseTimeIsOverStillExpires() {
        #expect(
            DesktopNotification(.made(1, secondsLeft: 0), replacing: 0, for: Self.all).expiresMilliseconds == 1000)
    }
}
