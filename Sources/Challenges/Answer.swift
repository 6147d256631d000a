// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The source of the `Authorization` field of a request. Indirect, for the reason given at ``ExchangeMachine/Action``.
package indirect enum Answer: Equatable, Sendable {
    /// The same field for every request.
    case fixed(AuthorizationField)
    /// A field computed for each request, including each repetition of it.
    case perRequest(any RequestSigner)

    /// The field for `request`; nil if it depends on content that is not available.
    package func field(
        for request: some RequestDescription, _ inputs: @autoclosure () -> AnswerInputs
    ) -> AuthorizationField? {
        switch self {
        case .fixed(let field): field
        case .perRequest(let signer): signer.field(for: request, inputs())
        }
    }

    /// Whether ``field(for:_:)`` depends on the content.
    package var needsContent: Bool {
        switch self {
        case .fixed: false
        case .perRequest(let signer): signer.needsContent
        }
    }

    package static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.fixed(let left), .fixed(let right)): left == right
        case (.perRequest(let left), .perRequest(let right)): left === right
        case (.fixed, .perRequest), (.perRequest, .fixed): false
        }
    }
}

/// Computes the field of each request in one protection space, and stores the state that these requests share, such as
/// the nonce and its count. Requests on several threads use one signer.
package protocol RequestSigner: AnyObject, Sendable {
    /// Whether the field depends on the content.
    var needsContent: Bool { get }

    /// Whether the server has accepted a field that was sent before a challenge.
    var hasServed: Bool { get }

    /// Whether the next field will be the first one that uses the server's latest announcement.
    var isRenewed: Bool { get }

    /// The field for `request`; nil if it depends on content that is not available.
    func field(for request: some RequestDescription, _ inputs: AnswerInputs) -> AuthorizationField?

    /// Whether the server may refuse the field only because of an input that it has yet to give, such as a first nonce.
    func lacksInput(_ inputs: AnswerInputs) -> Bool

    /// Whether the next field answers `challenge` as if it had been made for it.
    func answers(_ challenge: Challenge) -> Bool

    /// The server has accepted a field that was sent before a challenge.
    func served()
}

extension RequestSigner {
    package var needsContent: Bool { false }
    package var hasServed: Bool { true }
    package var isRenewed: Bool { false }
    package func lacksInput(_ inputs: AnswerInputs) -> Bool { false }
    package func answers(_ challenge: Challenge) -> Bool { false }
    package func served() {}
}

/// The parts of a request that an answer may depend on. Nothing is copied unless a signer reads it.
package protocol RequestDescription {
    /// In upper case, as sent.
    var method: String { get }
    /// As sent in the request line.
    var target: String { get }
    /// Passes the content to `body`, in order and in any number of pieces. Returns false if part of it is not
    /// available.
    func readContent(_ body: (UnsafeRawBufferPointer) -> Void) -> Bool
}

/// The time and the randomness for one answer. The modules that compute answers have no clock and no generator of their
/// own.
package struct AnswerInputs {
    /// 100 ns steps since 1601, as MS-DTYP §2.3.3 defines FILETIME. Each access reads the clock.
    package var fileTime: UInt64 { readClock() }
    private let readClock: () -> UInt64
    /// Returns the given number of unpredictable bytes.
    package let random: (Int) -> [UInt8]
    /// Those that origins have given for proofs (RFC 9449 §9); nil without any.
    private let nonces: DPoPNonces?
    /// The one in the response that the request answers, if there is one: a server may accept each nonce only once, and
    /// have given the last one of ``nonces`` to another request.
    package let nonceToAnswer: String?

    package init(
        fileTime: @autoclosure @escaping () -> UInt64, random: @escaping (Int) -> [UInt8], nonces: DPoPNonces? = nil,
        nonceToAnswer: String? = nil
    ) {
        readClock = fileTime
        self.random = random
        self.nonces = nonces
        self.nonceToAnswer = nonceToAnswer
    }

    /// The nonce for the proof of a request to `origin`, if it has given one.
    package func nonce(of origin: Origin) -> String? { nonceToAnswer ?? nonces?.nonce(of: origin) }
}
