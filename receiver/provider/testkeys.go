package provider

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"sync"
)

// The keys of the samples. They are public on purpose: who configures one for
// real lets everybody in.
const (
	testKid         = "hookonce-test"
	testEd25519Seed = "hookonce test seed of 32 bytes!!"
	testECDSASeed   = "hookonce test scalar of 32 bytes"

	testRSAPublic = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA7i3maSv6sdgPpp+fTJBIvh/545Yt1BGYi7ErYYV/EuHiiOv81oRp6IO9OmQDnCN/178VS0S++2FcHg5OdHWHFCRz7fJjfMBJG2jM3T2Zn+ftkdq8oJH5j4ckjtpibuHRQWMPn6ouekW6r1HA92Ou+yTIMoRyLXc6QRk1WgTfLXDvITBAFcv0YPCjrr+kpY0siJZV15g/WODpV7lWN0+B5xNJNRjX1P46Ul8WQi4xrrisrO0Op3n8YaSD08ExQHN2yQgi/WzSiGqRW4SAh5GzsmBBUYnrho2qQpF+ra9VJkwvaHjAsyXblnfm4O2G6E5n63JuRLwKWjilQ7wNNtbe4QIDAQAB"
	testRSA       = "MIIEowIBAAKCAQEA7i3maSv6sdgPpp+fTJBIvh/545Yt1BGYi7ErYYV/EuHiiOv81oRp6IO9OmQDnCN/178VS0S++2FcHg5OdHWHFCRz7fJjfMBJG2jM3T2Zn+ftkdq8oJH5j4ckjtpibuHRQWMPn6ouekW6r1HA92Ou+yTIMoRyLXc6QRk1WgTfLXDvITBAFcv0YPCjrr+kpY0siJZV15g/WODpV7lWN0+B5xNJNRjX1P46Ul8WQi4xrrisrO0Op3n8YaSD08ExQHN2yQgi/WzSiGqRW4SAh5GzsmBBUYnrho2qQpF+ra9VJkwvaHjAsyXblnfm4O2G6E5n63JuRLwKWjilQ7wNNtbe4QIDAQABAoIBABDpQuccR4pJlkDlLAUeaH/RWueRIfNhBXUDsRoVRbLERZaltNfRYoivE+g5sjTro1fg+iTUPoAwRz9eEi18K8lfFjkioPQ6XeZ7kDI0PbxoFgrpXkPDYZYSiSK4eE05rOco3rLePTsSyODKW/pkwkeUMr+9fjLiuIjnPo3D80mxTEMTIu7gCT4cfkAbkbObc8F8Yh4G2q3ty+AgCXiFzXrJfWelwbfM1HVkRbM81AQfyR/Is3tUPzgNRCMOKD2+bJ8KSj64f9cc5xBp3JkwcxsTa4Po3aYM+eEwdSTSbzkjuKXJkaYk6bZiXQzfUFcJn5kPp09CRqJhu7aO7hz3PP0CgYEA+3mqn4oz3xxc8ZjdHBP8ZiUgcfm/r1AlJMLEYrutTHsFLIfKuLfe8wLdIDEi9HABSRw69QwiH39lSUbDiI4TFc3RZa4EQztjLJX69kvTrqpljES7uZk2AuRxJW9CFxqdUf7pKyvVeJ1b2mh68K4jhMCbPVToh7by4dUSjQ6K+N0CgYEA8nb9hNEil2YDZelHBANlwrEwgpc4u1fVQ7Z6z9RpzdnP9i+rNwBDlpNQqZS8OSmoCizdxH8YEebwF7HSOMmOa5npDlHUVNdIYm4KHC+p7D7QfeEIly/5C4cYHobyRFO6ijOCmp6YiIg90WYJ6JRd/Th/gP0pqAod/vFbWw4om9UCgYBUkh4neTrolYlMVrRFdRM05td6fRtRwgo7yqRw79zgE58x0pkCdhOsdhIXeW7f9ar5A11we5weK6HMetfXXLBebNE2+MbGNXqsy+OSYP3Xh8aO3a6kRDo9zsWeaUQ4sOKnaKrRsfQglAsH8Isn1ehsBLowbhWlTolwGVAb0AA8oQKBgQDCB2C3UZjJ6TPc8QIIfyOG2r7EMnmOyin65uN+vy/wMFaQXvM3r3lm3PqWylSZtfEoO2E4prA/WzxU6dMd6IWVK/RppigxwJnHUuG6TpY/XMEBivyR6Cz3AaPWgg0LiqljgPcJ/tJ3p/c4Q9y4B0rzoau/MFiOhZIde02tHzZ2BQKBgFMuFuVs7XsJDtie/w8mbJr8qBhg+2FOEtXxtCOdc1j6JIwUc7xStoxCKeEOEBQkZCp1/tApIHUPsCqEnl9nVIZGajsaRxfiplDa9Zzq67HiStqFWO/XFsPWr0uElvtDIKVPaAeBzDO7yHX6U1uTNwdF+GWpRZPMr5Lr6jujKRvt"
)

// rsa signs with the secret, which is a private key.
func (d *Draft) rsa(content string) []byte {
	key, err := parsePrivateKey(d.Secret)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256([]byte(content))
	sig, _ := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	return sig
}

func testEd25519() ed25519.PrivateKey { return ed25519.NewKeyFromSeed([]byte(testEd25519Seed)) }

// testECDSA is a P-256 key with the seed as its scalar.
var testECDSA = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), []byte(testECDSASeed))
	if err != nil {
		panic(err)
	}
	return key
})

func testECDSAPublic() string {
	der, err := x509.MarshalPKIXPublicKey(&testECDSA().PublicKey)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(der)
}

func (d *Draft) ecdsa(content string) []byte {
	sum := sha256.Sum256([]byte(content))
	sig, _ := ecdsa.SignASN1(rand.Reader, testECDSA(), sum[:])
	return sig
}
