#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# verify.sh openssl|gnutls|nss ROOT HOST:PORT...: performs a TLS handshake with 127.0.0.1:PORT for each HOST and trusts
# only ROOT. Prints one line per HOST: the host, and "accepted" or the error. Leaves an NSS database in ./nss.
client=$1 root=$2
shift 2

is_address() { case $1 in *[!0-9.]*) return 1 ;; esac; }

openssl_client() {
    if is_address "$1"; then name="-verify_ip $1"; else name="-servername $1 -verify_hostname $1"; fi
    # shellcheck disable=SC2086
    openssl s_client -connect "127.0.0.1:$2" $name -CAfile "$root" -no-CApath -no-CAstore -x509_strict \
        -verify_return_error
}

gnutls_client() {
    if is_address "$1"; then name=; else name="--sni-hostname=$1"; fi
    # shellcheck disable=SC2086
    gnutls-cli --x509cafile="$root" --port="$2" $name --verify-hostname="$1" 127.0.0.1
}

nss_client() {
    if is_address "$1"; then name=; else name="-a $1"; fi
    # shellcheck disable=SC2086
    tstclnt -d sql:nss -h 127.0.0.1 -p "$2" $name -Q
}

if [ "$client" = nss ]; then
    mkdir -p nss
    certutil -N -d sql:nss --empty-password
    certutil -A -d sql:nss -n root -t C,, -i "$root"
fi
for place in "$@"; do
    host=${place%:*}
    if said=$("${client}_client" "$host" "${place##*:}" 2>&1 </dev/null); then
        echo "$host accepted"
    else
        echo "$host $(echo "$said" | grep -iE 'error|violat|constraint|not trusted' | tr '\n' ' ')"
    fi
done
