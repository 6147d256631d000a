// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The facts about its task that a `URLProtocol` needs and URLSession on Linux does not reveal: its queue, the body of
/// an upload, and whether the task reports to a delegate.
///
/// All are read by reflection. If a version of Foundation stores them differently, tasks or uploads fail with a reason,
/// and delegates receive a response in one piece. Must be called when the task starts to load, on its queue.
struct SessionTask {
    /// Where the content of the task's request is.
    enum Body {
        case inRequest
        case own(RequestContent)
        /// ``bodyStream(_:)`` asks the delegate for it.
        case atDelegate
    }

    private let task: URLSessionTask?

    init(_ task: URLSessionTask?) { self.task = task }

    /// The queue on which the task, and its protocol's calls to the client, are handled. Throws
    /// `URLError.unsupportedURL` with a reason if it is unknown.
    func queue() throws -> DispatchQueue {
        guard let queue = stored("workQueue") as? DispatchQueue else {
            throw Self.unsupported(
                "tasks are not supported through the proxy with this version of Foundation: use AnsweringSession")
        }
        return queue
    }

    /// Throws `URLError.unsupportedURL` with a reason for a download, and for an upload whose body is unknown.
    func body() throws -> Body {
        guard !(task is URLSessionDownloadTask) else {
            throw Self.unsupported(
                "download tasks are not supported through the proxy: use AnsweringSession, or a data task")
        }
        guard task is URLSessionUploadTask else { return .inRequest }
        guard let body = stored("knownBody"), let (kind, content) = Self.payload(of: body) else { return .atDelegate }
        switch (kind, content) {
        case ("data", let data as DispatchData): return .own(.bytes(Data(data)))
        case ("file", let file as URL): return .own(.stream(try ContentStream(file: file)))
        default:
            throw Self.unsupported(
                "upload tasks are not supported through the proxy with this version of Foundation: use AnsweringSession"
            )
        }
    }

    /// Asks the delegate for the body of an upload, on the session's delegate queue.
    func bodyStream(_ completion: @escaping @Sendable (InputStream?) -> Void) throws {
        guard let task, let session = stored("session") as? URLSession,
            let delegate = session.delegate as? any URLSessionTaskDelegate
        else {
            throw Self.unsupported("the upload has no body, and its session has no delegate that supplies one")
        }
        session.delegateQueue.addOperation {
            delegate.urlSession(session, task: task, needNewBodyStream: completion)
        }
    }

    /// Whether the task passes its response to a delegate, in pieces; false if it has a completion handler, which
    /// receives only the last piece.
    var reportsToDelegate: Bool {
        guard let task, task is URLSessionDataTask, let session = stored("session"),
            let registry = Self.child("taskRegistry", of: session),
            let behaviours = Self.child("behaviours", of: registry)
        else { return false }
        for entry in Mirror(reflecting: behaviours).children {
            guard let number = Self.child("key", of: entry.value) as? Int, number == task.taskIdentifier,
                let behaviour = Self.child("value", of: entry.value)
            else { continue }
            return String(describing: behaviour).hasSuffix(".callDelegate")
                || String(describing: behaviour) == "callDelegate"
        }
        return false
    }

    private static func unsupported(_ reason: String) -> URLError {
        URLError(.unsupportedURL, userInfo: [NSLocalizedDescriptionKey: reason])
    }

    // MARK: Reflection

    /// The value of a stored property of the task or of its superclasses, unwrapped.
    private func stored(_ name: String) -> Any? {
        var mirror = task.map { Mirror(reflecting: $0) }
        while let current = mirror {
            if let found = current.children.first(where: { $0.label == name }) { return Self.unwrapped(found.value) }
            mirror = current.superclassMirror
        }
        return nil
    }

    private static func child(_ name: String, of value: Any) -> Any? {
        Mirror(reflecting: value).children.first { $0.label == name }.flatMap { unwrapped($0.value) }
    }

    private static func unwrapped(_ value: Any) -> Any? {
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle == .optional else { return value }
        return mirror.children.first.flatMap { unwrapped($0.value) }
    }

    /// The name of an enumeration's case and its associated value.
    private static func payload(of value: Any) -> (kind: String, content: Any)? {
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle == .enum, let child = mirror.children.first else { return nil }
        return child.label.map { ($0, child.value) }
    }
}
