// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignHTTP1

// CONNECT towards a parent that speaks HTTP (RFC 9110 §9.3.6). One value asks once or several times on the same
// connection: a 407 is answered with the same request and a Proxy-Authorization.
//
//     requestSent → received … → opened                 2xx: what follows belongs to the tunnel
//                              → responded(response)    anything else; requestSent again if the connection is reusable
//
// A Content-Length or Transfer-Encoding in a 2xx is ignored (RFC 9110 §9.3.6). 1xx responses are skipped.

/// Opens one connection through an http or https parent.
package struct ConnectClient: Sendable {
    package enum State: Hashable, Sendable, CaseIterable {
        case idle
        case waitingForHead
        case waitingForBody
        case opened
        case failed
    }

    package enum Action: Equatable, Sendable {
        case needMore
        /// The connection is open. `head` may complete an authentication (RFC 7615); the bytes after it are already
        /// from the other end of the connection.
        case opened(head: FieldLines, rest: [UInt8])
        case responded(ConnectResponse)
    }

    /// The longest body of a response, in bytes. A parent that sends more loses the connection.
    package static let maximumBodyBytes = 64 * 1024
    /// The most 1xx responses to one request.
    package static let maximumInformational = 8

    package private(set) var state = State.idle
    private let parent: ParentProxy
    /// The target of the request.
    package let authority: String
    /// The value of Via.
    private let via: String
    private var buffer: [UInt8] = []
    private var informational = 0
    private var head: ResponseHead?
    private var framing = BodyFraming.none
    private var decoder = BodyDecoder(.none)
    private var body: [UInt8] = []
    private var search = LongHeadSearch()
    /// A response was not clean, and was repaired. The connection carries only a handshake that authenticates it.
    package private(set) var hasRepaired = false

    package init(parent: ParentProxy, to host: HostName, port: UInt16, via: String) {
        precondition(!parent.kind.isSOCKS, "the parent does not speak HTTP")
        self.parent = parent
        self.via = via
        authority = HostText.joined(host.text, port)
    }

    /// The head for the parent, which the caller sends and reports with ``requestSent()``.
    package func request(_ proxyAuthorization: (any SecretFieldValue)? = nil) -> ConnectRequest {
        ConnectRequest(authority: authority, via: via, proxyAuthorization: proxyAuthorization)
    }

    package mutating func requestSent() {
        precondition(state == .idle, "a response is still to come")
        state = .waitingForHead
        informational = 0
    }

    /// Bytes have arrived from the parent. Unrequested bytes are an error: bytes after `opened` belong to the tunnel,
    /// and a driver that still decides about a response must not read more on its connection.
    package mutating func received(_ bytes: some Collection<UInt8>) throws(ParentsError) -> Action {
        buffer += bytes
        do throws(ParentsError) {
            switch state {
            case .waitingForHead: return try readHead()
            case .waitingForBody: return readBody()
            case .idle: throw fault("it sent something before it was asked")
            case .opened, .failed: throw fault("it sent more than its response")
            }
        } catch {
            state = .failed
            throw error
        }
    }

    /// The parent closed the connection, which ends a response without a length. One whose body is not complete counts:
    /// its head says what the parent wants.
    package mutating func connectionEnded() throws(ParentsError) -> Action {
        if state == .waitingForBody, let head {
            return .responded(finished(head, isCut: !decoder.inputEnded()))
        }
        let fault = fault("it closed the connection before its response was complete")
        state = .failed
        throw fault
    }

    // MARK: Responses

    private mutating func readHead() throws(ParentsError) -> Action {
        while true {
            let parsed: Parsed<ResponseHead>
            do throws(HTTP1Error) {
                let input = buffer
                guard search.mayEnd(in: input.span.bytes), let found = try ResponseHead.parse(input.span.bytes)
                else { return .needMore }
                search = LongHeadSearch()
                parsed = found
                framing = try parsed.head.framing(answering: .connect)
            } catch {
                throw fault("not an HTTP response to CONNECT: \(error.detail)")
            }
            buffer.removeFirst(parsed.consumedBytes)
            if parsed.head.repair != nil { hasRepaired = true }
            let status = parsed.head.status
            if status == 101 { throw fault("it switches the protocol of a CONNECT") }
            if parsed.head.isInformational {
                informational += 1
                guard informational <= Self.maximumInformational else {
                    throw fault("it sent more than \(Self.maximumInformational) informational responses")
                }
                continue
            }
            guard !(200..<300).contains(status) else {
                state = .opened
                defer { buffer = [] }
                return .opened(head: parsed.head.fields, rest: buffer)
            }
            head = parsed.head
            decoder = BodyDecoder(framing, sentBy: .origin)
            body = []
            state = .waitingForBody
            return readBody()
        }
    }

    private mutating func readBody() -> Action {
        guard let head else { return .needMore }
        var offset = 0
        let input = buffer
        do throws(HTTP1Error) {
            reading: while true {
                switch try decoder.next(input.span.bytes, from: &offset) {
                case .content(let range): body += input[range]
                case .needsMore: break reading
                case .end: break reading
                }
            }
        } catch {
            // Clients get what there is of the body. A chunk with a mistake changes nothing in the head.
            return .responded(finished(head, isCut: true))
        }
        buffer.removeFirst(offset)
        if body.count > Self.maximumBodyBytes {
            body.removeLast(body.count - Self.maximumBodyBytes)
            return .responded(finished(head, isCut: true))
        }
        return decoder.isComplete ? .responded(finished(head)) : .needMore
    }

    /// More bytes after the response would be read as the next one, so the connection is not reused then.
    private mutating func finished(_ head: ResponseHead, isCut: Bool = false) -> ConnectResponse {
        if decoder.repair != nil { hasRepaired = true }
        let continues = !isCut && head.parentKeepsAlive && !framing.endsConnection && buffer.isEmpty
        state = continues ? .idle : .failed
        buffer = []
        defer { body = [] }
        return ConnectResponse(
            status: head.status, reason: head.reason, fields: head.fields, body: body,
            isReusable: continues && !hasRepaired)
    }

    private func fault(_ reason: String) -> ParentsError {
        let status = ResponseHead.status(atStartOf: buffer.span.bytes)
        return ParentsError(.malformedReply, "the parent \(parent): \(reason)", status: status)
    }
}

/// A response to CONNECT that does not open the connection.
package struct ConnectResponse: Equatable, Sendable {
    package let status: Int
    package let reason: String
    package let fields: FieldLines
    /// Without transfer coding, at most ``ConnectClient/maximumBodyBytes``.
    package let body: [UInt8]
    /// Whether the same connection accepts another request, and not only the rest of a handshake.
    package let isReusable: Bool

    /// Whether the parent challenges, for an exchange with the source `parentProxy`.
    package var isChallenge: Bool { status == ChallengeSource.parentProxy.status }

    /// The values of Proxy-Authenticate, for the exchange.
    package var challengeFields: [ChallengeField] { fields.challengeFields(of: .parentProxy) }
}
