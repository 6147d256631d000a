// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import Glibc
import WebViewProtocol

/// The web view of a sign-in: commands on standard input, events on standard output, one window.

Surroundings.restoreFatalSignals()

let options: Options
do {
    options = try Options(Array(CommandLine.arguments.dropFirst()))
} catch {
    let text = "countersign-webview: error: \(error)\ncountersign-webview: hint: \(Options.usage)\n"
    write(2, text, text.utf8.count)
    exit(2)
}
switch options.mode {
case .help:
    print(Options.help)
    exit(0)
case .version:
    print("protocol \(Event.protocolVersion), WebKitGTK \(Installation.webKitVersion)")
    exit(0)
case .signIn: break
}

Surroundings.restrict()
var events = EventWriter(file: 1)
do throws(StartFailure) {
    try Installation.checkSandbox()
    if let bundle = options.caBundle { try Launcher.enterNamespace(bundle: bundle, options: options) }
    if options.isInNamespace { Launcher.endWithParent() }
    events = try .takingStandardOutput()
    try Installation.checkDisplay()
    exit(Program(events: events, options: options).run())
} catch {
    events.write(.failed(code: error.code, sentence: error.sentence, remedy: error.remedy))
    exit(1)
}
