// SPDX-License-Identifier: Apache-2.0

import CountersignCDuktape
import CountersignCJavaScriptCore
import CountersignCLinux

/// A JavaScript engine with the prelude, for one script.
protocol ScriptEngine: AnyObject {
    /// Runs the script once, which defines its functions. `request` has no URL.
    func load(_ script: [UInt8], request: [UInt8]) -> ScriptLoading

    /// The prelude's reply.
    func answer(_ request: [UInt8]) -> Result<[UInt8], ScriptFault>
}

/// The result of running a script once.
enum ScriptLoading {
    case loaded
    /// The prelude's reply that names the look-up that is missing.
    case needs([UInt8])
    case fault(ScriptFault)
}

extension ScriptEngine {
    /// The result of running a script; `thrown` is the error that it threw. A missing look-up takes precedence, even if
    /// the script has caught the resulting error.
    func loading(_ thrown: ScriptFault?) -> ScriptLoading {
        switch answer([]) {
        case .failure(let fault): .fault(fault)
        case .success(let missing) where missing != Array("{}".utf8): .needs(missing)
        case .success: thrown.map { .fault($0) } ?? .loaded
        }
    }
}

/// The engines, the preferred one first.
package enum EngineKind: String, Sendable, CaseIterable {
    /// Of WebKitGTK, without a compiler for machine code.
    case javaScriptCore = "javascriptcore"
    case duktape
}

/// The library of an engine, which has read all the files that it needs.
enum EngineLibrary {
    /// The group of all its engines.
    case javaScriptCore(UnsafeMutableRawPointer)
    case duktape

    enum Failure: Error {
        case notInstalled
        /// It needs more than a confined process has. Nothing else may be started in this process.
        case notConfinable
    }

    /// The permitted growth of the shapes of a script's objects with JavaScriptCore, in bytes.
    private static let shapeBytes = 16 << 20

    /// Nil means the first one that is installed.
    static func open(_ kind: EngineKind?) throws(Failure) -> EngineLibrary {
        if kind != .duktape, csn_jsc_is_installed() != 0 {
            guard let group = csn_jsc_start(shapeBytes) else { throw .notConfinable }
            return .javaScriptCore(group)
        }
        guard kind != .javaScriptCore, csn_duk_function("duk_create_heap") != nil else { throw .notInstalled }
        return .duktape
    }

    /// Nil if there is no memory.
    func engine() -> (any ScriptEngine)? {
        switch self {
        case .javaScriptCore(let group): JavaScriptCoreEngine(group)
        case .duktape: DuktapeEngine()
        }
    }

    /// The confined process's reaction to a system call that the engine tries but does not need.
    var denial: csn_denial {
        switch self {
        case .javaScriptCore: CSN_FAIL
        case .duktape: CSN_KILL
        }
    }
}
