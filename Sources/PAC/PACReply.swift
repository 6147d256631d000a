// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// A reply of the worker. The worker runs a third party's program, so the content of a reply is not trusted.
enum PACReply: Equatable {
    case decided(PACDecision)
    /// The call has to be repeated with this.
    case needs(PACLookUp)

    init(_ content: [UInt8]) throws(PACError) {
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONParser.parse(content, limits: JSONLimits(bytes: 64 * 1024, depth: 3))
        } catch {
            // The engine's strings may contain surrogates, which no text contains.
            throw PACError(.wrongResult, "the script's result is not text")
        }
        if let name = value["lookUp"]?.text {
            self = .needs(.name(name))
        } else if value["lookUpOwn"] != nil {
            self = .needs(.ownAddresses)
        } else if value["noFunction"] != nil {
            throw PACError(.noFunction, "the script has no function FindProxyForURL")
        } else if let result = value["result"]?.text {
            guard result.utf8.count <= PACLimits.textBytes else {
                throw PACError(.wrongResult, "FindProxyForURL returned more than \(PACLimits.textBytes) bytes")
            }
            self = .decided(
                PACDecision(
                    result: result, usesClock: value["usesClock"]?.content == .bool(true),
                    alerts: value["alerts"]?.texts ?? []))
        } else {
            throw .notAReply
        }
    }
}

extension PACError {
    init(_ fault: ScriptFault) {
        let position =
            switch (fault.line, fault.column) {
            case (0, _): ""
            case (let line, 0): "line \(line): "
            case (let line, let column): "line \(line), column \(column): "
            }
        // The engine repeats the line at the end of a syntax error.
        var text = PrintableText.longer(String(decoding: fault.text, as: UTF8.self))
        if let end = text.firstRange(of: " (line "), fault.code != .thrown { text = String(text[..<end.lowerBound]) }
        switch fault.code {
        case .syntax: self.init(.syntax, "\(position)\(text)")
        case .newerSyntax:
            self.init(
                .syntax,
                "\(position)\(text); the engine in use, libduktape, knows ECMAScript 5 only: "
                    + MissingLibrary.javaScriptCore.hint)
        case .thrown: self.init(.thrown, "\(position)the script failed: \(text)")
        case .outOfMemory: self = .outOfMemory
        }
    }
}

extension JSONValue {
    fileprivate var text: String? {
        if case .string(let text) = content { text } else { nil }
    }

    fileprivate var texts: [String]? {
        if case .array(let values) = content { values.compactMap(\.text) } else { nil }
    }
}
