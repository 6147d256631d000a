// SPDX-License-Identifier: Apache-2.0

public import CountersignNIO
public import Foundation
import NIOCore

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Sends requests through a `ChallengeProxy` in this process, which answers their challenges. It has the asynchronous
/// methods of URLSession, including those that URLSession on Linux does not pass through
/// `URLSessionConfiguration.answering(through:)`: downloads to a file, responses as a stream, and uploads from a
/// sequence.
///
/// No method except `data` and the response to an upload holds the content in memory. The server is slowed down to the
/// pace of the reader, and an upload to the pace of the server.
///
/// Redirects are followed, up to 20 of them. The configuration's fields, cookies and time-outs apply. An
/// `AnsweringSession` does not retain the proxy. After the proxy has stopped, every method throws
/// `URLError.cannotConnectToHost`.
///
/// Every method throws `URLError`, as URLSession does without a proxy: `serverCertificateUntrusted` or
/// `cannotFindHost`, for example, with the reason as its `NSLocalizedDescriptionKey`. To cancel a request, cancel its
/// task: the method throws `URLError.cancelled`, and the connection to the server is closed. A challenge that is not
/// answered is a response with the status 401.
public final class AnsweringSession: Sendable {
    private let link: ProxyLink
    private let settings: SessionSettings

    /// Called with the progress of a transfer, from the task that transfers or from another one, in order.
    public typealias ProgressHandler = @Sendable (TransferProgress) -> Void

    /// Waits until the proxy is listening. Throws the errors of the proxy's `address`.
    public init(
        configuration: URLSessionConfiguration = .default, through proxy: ChallengeProxy
    ) async throws {
        settings = SessionSettings(configuration)
        link = ProxyLink(to: proxy)
        _ = try await proxy.address
    }

    // MARK: Data

    /// Sends a request, and returns its response with the content in memory.
    public func data(for request: URLRequest) async throws -> (Data, URLResponse) {
        try await collected(try await response(to: request, nil, nil))
    }

    /// Fetches a URL into memory.
    public func data(from url: URL) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url))
    }

    // MARK: Streams

    /// Sends a request, and returns its response as soon as the head has arrived, with the content as a stream.
    ///
    /// The server is slowed down if the stream is read slowly; meanwhile, only `timeoutIntervalForResource` applies. If
    /// the stream is released before its end, the transfer is cancelled.
    public func bytes(for request: URLRequest) async throws -> (AsyncBytes, URLResponse) {
        let (response, streamed) = try await response(to: request, nil, nil)
        return (AsyncBytes(pieces: AsyncBytes.Pieces(content: streamed.content)), response)
    }

    /// Fetches a URL as a stream.
    public func bytes(from url: URL) async throws -> (AsyncBytes, URLResponse) {
        try await bytes(for: URLRequest(url: url))
    }

    // MARK: Downloads

    /// Sends a request, and writes the content of the response to a new file in the temporary folder, which only this
    /// user can read.
    ///
    /// Move or remove the file when you have read it: the system does not. If the method throws, there is no file.
    /// Throws `URLError.cannotCreateFile` or `cannotWriteToFile` if the file cannot be written.
    public func download(
        for request: URLRequest, onProgress: ProgressHandler? = nil
    ) async throws -> (URL, URLResponse) {
        let (response, streamed) = try await response(to: request, nil, nil)
        let file = try DownloadedFile()
        do {
            let expected = response.expectedContentLength >= 0 ? response.expectedContentLength : nil
            var progress = TransferProgress(countOfBytesExpectedToReceive: expected)
            for try await piece in streamed.content {
                try await file.write(piece)
                progress.countOfBytesReceived += Int64(piece.count)
                onProgress?(progress)
            }
            try await file.close()
            return (file.url, response)
        } catch {
            file.remove()
            throw error
        }
    }

    /// Fetches a URL into a new file, as ``download(for:onProgress:)`` does.
    public func download(from url: URL, onProgress: ProgressHandler? = nil) async throws -> (URL, URLResponse) {
        try await download(for: URLRequest(url: url), onProgress: onProgress)
    }

    // MARK: Uploads

    /// Sends a request with `bodyData` instead of its own body.
    public func upload(
        for request: URLRequest, from bodyData: Data, onProgress: ProgressHandler? = nil
    ) async throws -> (Data, URLResponse) {
        try await upload(request, .bytes(bodyData), Int64(bodyData.count), onProgress)
    }

    /// Sends a request with the content of a file, which is read while it is sent. Throws Foundation's error if the
    /// file cannot be read, and `URLError.requestBodyStreamExhausted` if it becomes shorter meanwhile.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL, onProgress: ProgressHandler? = nil
    ) async throws -> (Data, URLResponse) {
        let content = try ContentStream(file: fileURL)
        return try await upload(request, .stream(content), content.length.map { Int64(clamping: $0) }, onProgress)
    }

    /// Sends a request with the parts of a sequence. Requests each part when the server has accepted enough of the
    /// previous ones.
    ///
    /// Without `contentLength`, the request has the chunked coding (RFC 9112 §7.1), which some servers reject. Throws
    /// the sequence's errors, and `URLError.requestBodyStreamExhausted` if its length is not `contentLength`, or if the
    /// server redirects the request, because a sequence cannot be sent again.
    public func upload<Parts: AsyncSequence & Sendable>(
        for request: URLRequest, from parts: Parts, contentLength: Int64? = nil, onProgress: ProgressHandler? = nil
    ) async throws -> (Data, URLResponse) where Parts.Element == Data {
        guard contentLength ?? 0 >= 0 else { throw URLError(.requestBodyStreamExhausted) }
        let content = ContentStream(parts: parts, length: contentLength.map { UInt64($0) })
        return try await upload(request, .stream(content), contentLength, onProgress)
    }

    private func upload(
        _ request: URLRequest, _ content: RequestContent, _ length: Int64?, _ onProgress: ProgressHandler?
    ) async throws -> (Data, URLResponse) {
        var sent: (@Sendable (UInt64) -> Void)?
        if let onProgress {
            sent = { count in
                onProgress(
                    TransferProgress(countOfBytesSent: Int64(clamping: count), countOfBytesExpectedToSend: length))
            }
        }
        var request = request
        if request.httpMethod == nil || request.httpMethod == "GET" { request.httpMethod = "POST" }
        return try await collected(try await response(to: request, content, sent))
    }

    // MARK: Exchanges

    /// Sends a request, and follows redirects.
    private func response(
        to request: URLRequest, _ content: RequestContent?, _ sent: (@Sendable (UInt64) -> Void)?
    ) async throws -> (HTTPURLResponse, StreamedResponse) {
        var message = try ProxiedRequest(request, with: settings, content: content)
        let deadline = NIODeadline.now() + settings.patience
        for _ in 0...20 {
            let streamed = try await StreamedResponse(message, over: link, by: deadline, sent: sent)
            if let failure = streamed.head.failure(at: message.url) { throw failure }
            let response = try streamed.head.foundation(for: message.url, hidesChallenges: false)
            if let cookies = settings.cookies { streamed.head.storeCookies(of: message.url, in: cookies) }
            guard let next = try message.redirected(by: streamed.head, cookies: settings.cookies) else {
                return (response, streamed)
            }
            try await streamed.discard()
            message = next
        }
        throw URLError(.httpTooManyRedirects)
    }

    private func collected(_ response: (HTTPURLResponse, StreamedResponse)) async throws -> (Data, URLResponse) {
        var data = Data()
        for try await piece in response.1.content { data.append(piece) }
        return (data, response.0)
    }
}

/// How much of a transfer has been done, with the names of URLSessionTask's properties.
public struct TransferProgress: Hashable, Sendable {
    /// The bytes of the request's content that have been passed on, without its head.
    public var countOfBytesSent: Int64 = 0
    /// The length of the request's content; nil if it is not known.
    public var countOfBytesExpectedToSend: Int64?
    /// The bytes of the response's content that have been written to the file.
    public var countOfBytesReceived: Int64 = 0
    /// The length of the response's content; nil if the server does not announce it.
    public var countOfBytesExpectedToReceive: Int64?

    /// Creates a value, for tests.
    public init(
        countOfBytesSent: Int64 = 0, countOfBytesExpectedToSend: Int64? = nil, countOfBytesReceived: Int64 = 0,
        countOfBytesExpectedToReceive: Int64? = nil
    ) {
        self.countOfBytesSent = countOfBytesSent
        self.countOfBytesExpectedToSend = countOfBytesExpectedToSend
        self.countOfBytesReceived = countOfBytesReceived
        self.countOfBytesExpectedToReceive = countOfBytesExpectedToReceive
    }
}
