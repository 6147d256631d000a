// SPDX-License-Identifier: Apache-2.0

import CountersignSPNEGO

extension NegTokenInit {
    /// A token that offers only NTLM.
    static func ntlm(_ negotiate: [UInt8]) -> NegTokenInit {
        NegTokenInit(mechTypes: [MechanismOID.ntlm], mechToken: negotiate)
    }
}

extension NegTokenResp {
    /// Throws `refusal` if the server ended the negotiation, and `wantsTicket` if it chose a mechanism that was not
    /// offered.
    func checkAcceptable(
        refusal: NTLMError = NTLMError(.rejected, "the origin ended the negotiation without accepting it")
    ) throws(NTLMError) {
        guard negState != .reject else { throw refusal }
        guard supportedMech == nil || supportedMech == MechanismOID.ntlm else { throw Self.wantsKerberos }
    }

    /// In `Negotiate`, the only mechanisms in use are Kerberos and NTLM (RFC 4559 §4), and only NTLM was offered.
    static let wantsKerberos = NTLMError(.wantsTicket, "the origin wants Kerberos; NTLM was refused")
}

extension NTLMError {
    /// Reports a fault of the envelope as one of the dialogue in it.
    package static func reading<Token>(
        _ token: @autoclosure () throws(SPNEGOError) -> Token
    ) throws(NTLMError) -> Token {
        do throws(SPNEGOError) {
            return try token()
        } catch {
            switch error.code {
            case .malformed: throw NTLMError(.malformed, error.detail)
            case .unsupported: throw NTLMError(.unsupported, error.detail)
            }
        }
    }
}
