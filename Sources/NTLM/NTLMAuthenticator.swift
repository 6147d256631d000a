// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// NTLM, raw or in SPNEGO. Both variants open the same protection space, which has no realm.
package final class NTLMAuthenticator: Authenticator {
    /// With the scheme name `NTLM`.
    package static let raw = NTLMAuthenticator(.raw)
    /// In SPNEGO, with the scheme name `Negotiate`.
    package static let spnego = NTLMAuthenticator(.spnego)

    private let framing: NTLMContext.Framing
    private let hasMD5: Bool

    /// `hasMD5` says whether OpenSSL can compute MD5, on which every proof of NTLMv2 depends.
    init(_ framing: NTLMContext.Framing, hasMD5: Bool = Digest.md5.isAvailable) {
        self.framing = framing
        self.hasMD5 = hasMD5
    }

    package var schemeName: String {
        switch framing {
        case .raw: "NTLM"
        case .spnego: "Negotiate"
        }
    }

    package var scheme: AuthenticationScheme { .ntlm }
    package var name: String { "NTLM" }
    package var bindsConnection: Bool { true }
    package var usesChannelBinding: Bool { true }
    package var verifiesAcceptance: Bool { true }

    package func realm(of challenge: Challenge) -> String? { nil }

    package func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String? {
        do throws(AuthenticationError) {
            _ = try makeContext(credential, context)
            return nil
        } catch {
            return error.detail
        }
    }

    /// Validates the credential now, while the challenge is still held and can be handed back.
    package func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply {
        _ = try makeContext(credential, context)
        return .dialogue
    }

    package func makeDialogue(
        _ credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> any TokenDialogue {
        NTLMDialogue(context: try makeContext(credential, context))
    }

    private func makeContext(
        _ credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> NTLMContext {
        let password = try credential.password(for: name)
        guard hasMD5 else { throw .missing(.md5, for: name) }
        do throws(NTLMError) {
            return try NTLMContext(
                credential: password, domain: context.domain, servicePrincipalName: context.servicePrincipalName,
                channelBinding: nil, workstation: "", framing: framing)
        } catch {
            throw AuthenticationError(.unusableCredential, error.detail)
        }
    }

    package func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict { repeated.nextToken(of: self) }

    /// The final response may contain SPNEGO's last token (RFC 4559 §5), which proves that the server also knows the
    /// password.
    package func acceptance(_ response: AcceptingResponse) -> AcceptanceVerdict { response.lastToken(of: "Negotiate") }

    /// A new connection to the space will be challenged again, so its first request already carries the first token.
    package func preemption(after answer: Answer) -> Preemption { .dialogue }
}

/// Runs the client's side of one NTLM dialogue for an exchange.
private struct NTLMDialogue: TokenDialogue {
    var context: NTLMContext

    mutating func take(_ step: TokenStep, binding: ChannelBinding?, _ inputs: AnswerInputs) -> TokenComputation {
        do throws(NTLMError) {
            switch step {
            case .open:
                return .computed(DialogueToken(context.negotiate(), expectsReply: true))
            case .reply(let serverToken):
                context.bind(to: binding)
                let token = try context.authenticate(
                    serverToken, now: inputs.fileTime, clientChallenge: inputs.random(8),
                    exportedSessionKey: inputs.random(16))
                return .computed(DialogueToken(token, expectsReply: false))
            case .conclude(let serverToken):
                return .computed(DialogueToken(concluding: try context.conclude(serverToken)))
            }
        } catch {
            return .failed(
                AuthenticationError(error.code == .wantsTicket ? .wantsTicket : .tokenFailed, error.detail))
        }
    }
}
