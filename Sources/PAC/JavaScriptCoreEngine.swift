// SPDX-License-Identifier: Apache-2.0

import CountersignCJavaScriptCore

/// JavaScriptCore, with today's JavaScript. Its memory is limited by the address space of the process.
final class JavaScriptCoreEngine: ScriptEngine {
    private let engine: UnsafeMutablePointer<csn_jsc_engine>

    /// Nil if there is no memory.
    init?(_ group: UnsafeMutableRawPointer) {
        guard let engine = csn_jsc_open(group) else { return nil }
        self.engine = engine
        guard Self.with(Array(Prelude.program.utf8), { csn_jsc_prepare(engine, $0) }) == CSN_JSC_DONE else {
            // A program of our own, before any script, in a process that has nothing else to do.
            fatalError("the prelude fails: \(String(decoding: fault(.thrown).text, as: UTF8.self))")
        }
    }

    deinit { csn_jsc_close(engine) }

    func load(_ script: [UInt8], request: [UInt8]) -> ScriptLoading {
        if case .failure(let fault) = answer(request) { return .fault(fault) }
        switch Self.with(script, { csn_jsc_load(engine, $0) }) {
        case CSN_JSC_DONE: return loading(nil)
        case CSN_JSC_SYNTAX: return .fault(fault(.syntax))
        default: return loading(fault(.thrown))
        }
    }

    func answer(_ request: [UInt8]) -> Result<[UInt8], ScriptFault> {
        let outcome = Self.with(request) { csn_jsc_call(engine, $0) }
        return outcome == CSN_JSC_DONE ? .success(text) : .failure(fault(.thrown))
    }

    /// The engine knows the line of an error only. It throws an error, too, if there is no memory for one value.
    private func fault(_ code: ScriptFault.Code) -> ScriptFault {
        let text = text
        if text == Array("RangeError: Out of memory".utf8) { return ScriptFault(.outOfMemory) }
        return ScriptFault(code, line: Int(engine.pointee.line), text: text)
    }

    // MARK: C

    private static func with(
        _ bytes: [UInt8], _ body: (UnsafePointer<CChar>?) -> csn_jsc_outcome
    ) -> csn_jsc_outcome {
        (bytes + [0]).withUnsafeBytes { body($0.bindMemory(to: CChar.self).baseAddress) }
    }

    private var text: [UInt8] {
        let count = engine.pointee.text_count
        return [UInt8](unsafeUninitializedCapacity: max(count, 1)) { buffer, used in
            buffer.withMemoryRebound(to: CChar.self) { csn_jsc_copy_text(engine, $0.baseAddress) }
            used = count
        }
    }
}
