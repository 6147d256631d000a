// SPDX-License-Identifier: Apache-2.0

import CountersignCDuktape

/// libduktape. It knows ECMAScript 5, to which ``Polyfills`` adds functions.
final class DuktapeEngine: ScriptEngine {
    private let engine: UnsafeMutablePointer<csn_duk_engine>

    /// For the column of a syntax error, at most this many bytes are compiled again.
    private static let searchBytes = 1 << 20

    /// Nil if the library is not installed.
    init?() {
        guard let engine = csn_duk_open(PACLimits.memoryBytes) else { return nil }
        self.engine = engine
        for (program, run) in [(Polyfills.program, csn_duk_load), (Prelude.program, csn_duk_prepare)] {
            guard Self.with(Array(program.utf8), { run(engine, $0, $1) }) == CSN_DUK_DONE else {
                // A program of our own, before any script, in a process that has nothing else to do.
                fatalError("the prelude fails: \(String(decoding: Self.text(engine), as: UTF8.self))")
            }
        }
    }

    deinit { csn_duk_close(engine) }

    func load(_ script: [UInt8], request: [UInt8]) -> ScriptLoading {
        if case .failure(let fault) = answer(request) { return .fault(fault) }
        let outcome = Self.with(script) { csn_duk_load(engine, $0, $1) }
        if outcome != CSN_DUK_DONE, engine.pointee.is_exhausted != 0 { return .fault(ScriptFault(.outOfMemory)) }
        let line = Int(engine.pointee.line)
        let text = Self.text(engine)
        guard outcome != CSN_DUK_SYNTAX else {
            let code: ScriptFault.Code = NewerSyntax.isIn(script, line: line) ? .newerSyntax : .syntax
            return .fault(ScriptFault(code, line: line, column: column(ofErrorIn: script, line), text: text))
        }
        return loading(outcome == CSN_DUK_DONE ? nil : ScriptFault(.thrown, line: line, text: text))
    }

    func answer(_ request: [UInt8]) -> Result<[UInt8], ScriptFault> {
        let outcome = Self.with(request) { csn_duk_call(engine, $0, $1) }
        let text = Self.text(engine)
        guard outcome != CSN_DUK_DONE else { return .success(text) }
        if engine.pointee.is_exhausted != 0 { return .failure(ScriptFault(.outOfMemory)) }
        return .failure(ScriptFault(.thrown, line: Int(engine.pointee.line), text: text))
    }

    // MARK: Columns

    /// The engine knows the line of an error only, and it has read one token more when it reports it. So the longest
    /// part of the line whose error is that the text ends, or that has none, ends with the token at fault. 0 if that is
    /// too expensive to find.
    private func column(ofErrorIn script: [UInt8], _ line: Int) -> Int {
        let lines = script.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard lines.indices.contains(line - 1) else { return 0 }
        let text = lines[line - 1]
        guard text.count * (text.endIndex + 1) <= Self.searchBytes else { return 0 }
        for end in (text.startIndex...text.endIndex).reversed() where isBeginning(script[..<end]) {
            let before = Self.withoutLastToken(script[text.startIndex..<end])
            return String(decoding: before, as: UTF8.self).unicodeScalars.count + 1
        }
        return 1
    }

    private static func withoutLastToken(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isWord(_ byte: UInt8) -> Bool {
            byte >= 0x80 || "_$".utf8.contains(byte) || (0x30...0x39).contains(byte)
                || (0x61...0x7A).contains(byte | 0x20)
        }
        var line = line
        while let last = line.last, last <= 0x20 { line.removeLast() }
        guard let last = line.popLast(), isWord(last) else { return line }
        while let last = line.last, isWord(last) { line.removeLast() }
        return line
    }

    private func isBeginning(_ part: ArraySlice<UInt8>) -> Bool {
        let outcome = Self.with(Array(part)) { csn_duk_check(engine, $0, $1) }
        return outcome == CSN_DUK_DONE || String(decoding: Self.text(engine), as: UTF8.self).contains("end of input")
    }

    // MARK: C

    private static func with(
        _ bytes: [UInt8], _ body: (UnsafePointer<CChar>?, Int) -> csn_duk_outcome
    ) -> csn_duk_outcome {
        // An empty array has no address, and the engine reads a terminated text.
        (bytes + [0]).withUnsafeBytes { body($0.bindMemory(to: CChar.self).baseAddress, bytes.count) }
    }

    private static func text(_ engine: UnsafeMutablePointer<csn_duk_engine>) -> [UInt8] {
        let count = engine.pointee.text_count
        return [UInt8](unsafeUninitializedCapacity: max(count, 1)) { buffer, used in
            buffer.withMemoryRebound(to: CChar.self) { csn_duk_copy_text(engine, $0.baseAddress) }
            used = count
        }
    }
}
