// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

extension SiteOptions {
    /// The most methods or paths of one line.
    private static let limit = 64

    /// The methods of `methods=`. `column` is that of `text` in its line.
    static func methods(in text: String, at column: Int) throws(Fault) -> [String] {
        var methods: [String] = []
        var column = column
        for item in text.unicodeScalars.split(separator: ",", omittingEmptySubsequences: false) {
            let method = String(Substring(item))
            func fault(_ message: String, _ hint: String) -> Fault {
                Fault(column: column, message: message, hint: hint)
            }
            guard !method.isEmpty, method.utf8.allSatisfy(isTokenOctet) else {
                throw fault("\(PrintableText.quoteASCII(method)) is not a method", "write methods=GET,HEAD")
            }
            guard method != method.lowercased() else {
                throw fault(
                    "methods are compared as they are written: \(PrintableText.quoteASCII(method))",
                    "write \(method.uppercased())")
            }
            guard method != "CONNECT" else {
                throw fault(
                    "CONNECT opens a tunnel and is not a request to the site",
                    "leave it out; a WebSocket is opened with GET")
            }
            guard !methods.contains(method) else {
                throw fault("the method \(PrintableText.quoteASCII(method)) is given twice", "keep one of them")
            }
            guard methods.count < limit else {
                throw fault("more than \(limit) methods", "use another line for the rest")
            }
            methods.append(method)
            column += item.count + 1
        }
        return methods
    }

    /// The paths of `paths=`, and those with `!` before them. `column` is that of `text` in its line.
    static func paths(
        in text: String, at column: Int
    ) throws(Fault) -> (paths: [PathPattern], exceptions: [PathPattern]) {
        var (paths, exceptions) = ([PathPattern](), [PathPattern]())
        var column = column
        for item in text.unicodeScalars.split(separator: ",", omittingEmptySubsequences: false) {
            let isException = item.first == "!"
            let word = String(Substring(isException ? item.dropFirst() : item))
            func fault(_ message: String, _ hint: String, at offset: Int = 0) -> Fault {
                Fault(column: column + offset, message: message, hint: hint)
            }
            let path: PathPattern
            do {
                path = try PathPattern(parsing: word)
            } catch {
                throw fault("paths=: \(error.message)", error.hint, at: error.offset + (isException ? 1 : 0))
            }
            guard !paths.contains(path), !exceptions.contains(path) else {
                throw fault("the path \(PrintableText.quoteASCII(word)) is given twice", "keep one of them")
            }
            guard paths.count + exceptions.count < limit else {
                throw fault("more than \(limit) paths", "use another line for the rest")
            }
            if isException { exceptions.append(path) } else { paths.append(path) }
            column += item.count + 1
        }
        return (paths, exceptions)
    }

    /// The fault of the options about requests together with the others, once all words are read.
    func limitsFault() -> Fault? {
        func fault(_ name: String, _ reason: String, _ hint: String) -> Fault? {
            column(of: name).map { Fault(column: $0, message: "\(name)= has no effect \(reason)", hint: hint) }
        }
        if !intercepts {
            for name in ["methods", "paths", "case", "deny"] {
                if let found = fault(name, "with intercept=no", "remove one of the two options") { return found }
            }
        }
        if column(of: "paths") == nil, let found = fault("case", "without paths=", "add paths=, or remove the option") {
            return found
        }
        guard column(of: "methods") == nil, column(of: "paths") == nil, column(of: "for") == nil else { return nil }
        return fault(
            "deny", "in a line that is for all requests and clients",
            "add methods=, paths= or for=, or write it in another line of the site")
    }

    /// A token (RFC 9110 §5.6.2).
    private static func isTokenOctet(_ octet: UInt8) -> Bool {
        switch octet {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(octet)
        }
    }
}
