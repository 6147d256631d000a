// SPDX-License-Identifier: Apache-2.0

/// The command's arguments.
struct Options {
    enum Mode {
        case signIn, help, version
    }

    var mode = Mode.signIn
    /// The certificates that the view trusts, in PEM.
    var caBundle: String?
    /// Permits http on loopback in allowed origins.
    var permitsLoopbackHTTP = false
    /// Permits the same and the commands `snapshot` and `pressButton`.
    var isTest = false
    /// Set by `Launcher`.
    var isInNamespace = false

    init(_ arguments: [String]) throws(WrongUse) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--help": mode = .help
            case "--version": mode = .version
            case "--loopback-http": permitsLoopbackHTTP = true
            case "--test": (isTest, permitsLoopbackHTTP) = (true, true)
            case "--in-namespace": isInNamespace = true
            case "--ca-bundle":
                guard let file = rest.popFirst() else { throw WrongUse(description: "--ca-bundle needs a file") }
                caBundle = file
            default: throw WrongUse(description: "unknown argument '\(argument)'")
            }
        }
    }

    struct WrongUse: Error, CustomStringConvertible {
        let description: String
    }

    static let usage = "countersign-webview [--ca-bundle FILE] [--loopback-http] [--test]"

    static let help = """
        Usage: \(usage)

        Shows a sign-in page in a window of its own. A program starts it: it reads commands from standard input and
        writes events to standard output, one JSON object per line. Documentation/EmbeddedAgent.md describes them.

          --ca-bundle FILE  trust the certificates in FILE (PEM) instead of the system's
          --loopback-http   permit providers with http on loopback
          --test            the same, and the commands snapshot and pressButton
          --version         print the version of the protocol and of WebKitGTK
          --help            print this text
        """
}
